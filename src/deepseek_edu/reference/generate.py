"""Generation: token by token, or by drafting a block and verifying it in one pass.

A speculative step, with c positions processed and the next token x known:
    draft y_1 … y_5 after x; run the backbone on x, y_1 … y_k at positions c … c + k; accept a ≤ k drafts;
    take back the positions behind c + a; go on with the token that acceptance returned.
At temperature 0 the text is the same as without drafts; above it has the same distribution.

Source: report, section 2.4.3; DeepSpec `base_evaluator.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from deepseek_edu.reference import acceptance, checks, dspark, sampling


@dataclass
class Generation:
    """What was generated for one sequence, and how."""

    ids: list = field(default_factory=list)  # new tokens, the stop token included
    accepted: list = field(default_factory=list)  # drafts that stood, one number per verified block
    passes: int = 0  # runs of the backbone after the prefill
    stopped: bool = False  # whether a stop token ended it

    def add(self, tokens, limit, stop):
        """Append tokens up to the limit or a stop token; return whether to go on."""
        for token in tokens:
            if len(self.ids) < limit and not self.stopped:
                self.ids.append(int(token))
                self.stopped = int(token) in stop
        return len(self.ids) < limit and not self.stopped


def checked_options(config, max_new_tokens, draft_length, stop, temperature, seed):
    """Return (drafts to verify in a step, set of ids that end a text) with the defaults of a ModelConfig filled in.

    Args:
        max_new_tokens, draft_length, stop, temperature, seed: as in `generate`.

    Raises:
        ValueError: one of them is out of range or of another type.
    """
    checks.count(max_new_tokens, "max_new_tokens", 1)
    checks.count(seed, "seed", 0)
    sampling.check_temperature(temperature)
    block = config.dspark_block_size
    draft_length = block if draft_length is None else checks.count(draft_length, "draft_length", 0)
    if draft_length > block:
        raise ValueError(f"draft_length must be 0 … {block}; got {draft_length}")
    if stop is not None and (isinstance(stop, str) or not isinstance(stop, Iterable)):
        raise ValueError(f"stop must be a list of ids, empty to go on to max_new_tokens; got {stop!r}")
    return draft_length, {config.eos_token_id} if stop is None else {checks.count(id_, "stop", 0) for id_ in stop}


def generate(
    model,
    ids,
    max_new_tokens,
    temperature=0.0,
    seed=0,
    speculative=True,
    stop=None,
    cache=None,
    decoder="all",
    chunk=None,
    draft_length=None,
    types=None,
    features=None,
):
    """Continue a prompt.

    Args:
        model: model.Model.
        ids: prompt [T], 1 or more tokens; with a cache, those that it does not hold yet.
        max_new_tokens: 1 or more.
        temperature: 0 for greedy.
        seed: of all draws, 0 or more.
        speculative: draft and verify, if the model has draft stages.
        stop: ids that end the text; the configuration's eos_token_id by default.
        cache: Cache to continue, or None for a new quantised one. Afterwards it holds the prompt and all new tokens
            but the last.
        decoder, chunk: of `Model.prefill`.
        draft_length: drafts to verify in a step; the whole block by default.
        types, features: of `Model.prefill`, for a prompt with images.

    Returns:
        Generation.

    Raises:
        ValueError: an argument out of range; nothing has been fed then, and the cache is as it was.
    """
    draft_length, stop = checked_options(model.config, max_new_tokens, draft_length, stop, temperature, seed)
    rng = np.random.default_rng(seed)
    cache = model.new_cache() if cache is None else cache
    if speculative and cache.spare < draft_length:
        raise ValueError(
            f"cache must have {draft_length} spare positions to take drafts back; it has {cache.spare}; "
            "make it with model.new_cache(spare=…) or lower draft_length"
        )
    logits = model.prefill(ids, cache, types, features, chunk, decoder).logits[-1]
    result, prompt = Generation(), cache.length
    going = result.add([sampling.sample(logits, temperature, rng)], max_new_tokens, stop)
    while going:
        if speculative and model.stages and draft_length:
            tokens = _speculate(model, result, cache, temperature, rng, draft_length)
        else:
            output = model.decode(result.ids[-1], cache)
            result.passes += 1
            tokens = [sampling.sample(output.logits[-1], temperature, rng)]
        going = result.add(tokens, max_new_tokens, stop)
    if cache.length > prompt + len(result.ids) - 1:  # the text ended inside an accepted block
        cache.rollback(prompt + len(result.ids) - 1)
    return result


def _speculate(model, result, cache, temperature, rng, draft_length):
    """Draft after the last token, verify, roll back; return the tokens that follow it."""
    committed, token = cache.length, result.ids[-1]
    draft = dspark.draft(token, committed, model, cache, lambda row, _: sampling.sample(row, temperature, rng))
    drafts = draft.ids[1 : 1 + draft_length]
    output = model.decode(np.concatenate([[token], drafts]), cache)
    result.passes += 1
    if temperature < sampling.GREEDY_BELOW:
        accepted, following = acceptance.accept_greedy(drafts, output.logits)
    else:
        proposed = sampling.probabilities(draft.logits[:draft_length], temperature)
        wanted = sampling.probabilities(output.logits, temperature)
        accepted, following = acceptance.accept(drafts, proposed, wanted, rng)
    cache.rollback(committed + 1 + accepted)
    result.accepted.append(accepted)
    return [*drafts[:accepted], following]
