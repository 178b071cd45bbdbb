"""Generation for a batch: token by token, or by drafting a block and verifying it in one pass.

A speculative step of a row with c positions processed and the next token x known: draft y_1 … y_k after x; run the
backbone on x, y_1 … y_k at positions c … c + k; accept a ≤ k drafts; take back the positions behind c + a. Rows accept
different numbers of drafts, so their lengths drift apart; rows that have ended are fed nothing.

Source: report, section 2.4.3; DeepSpec `base_evaluator.py`.
"""

import torch

from deepseek_edu.model import acceptance, dspark, sampling
from deepseek_edu.model.tiles import padded
from deepseek_edu.reference.generate import Generation, checked_options


@torch.inference_mode()
def generate(
    model,
    ids,
    max_new_tokens,
    temperature=0.0,
    seed=0,
    speculative=True,
    stop=None,
    cache=None,
    counts=None,
    decoder="all",
    chunk=None,
    draft_length=None,
    types=None,
    features=None,
):
    """Continue prompts.

    Args:
        model: model.Model.
        ids: [B T] or lists of different lengths, 1 or more tokens each; with a cache, those it does not hold yet.
        max_new_tokens: 1 or more.
        temperature: 0 for greedy.
        seed: of all draws, 0 … 2**64 − 1; what a row draws depends on the rows beside it.
        speculative: draft and verify, if the model has draft stages.
        stop: ids that end a text; the configuration's eos_token_id by default.
        cache: Cache to continue, or None for a new quantised one. Afterwards it holds prompts and new tokens but the
            last of each row.
        counts, decoder, chunk: of `Model.prefill`.
        draft_length: drafts to verify in a step; the whole block by default.
        types, features: of `Model.prefill`, for prompts with images.

    Returns:
        list of Generation, one per row.

    Raises:
        ValueError: an argument out of range; nothing has been fed then, and the cache is as it was.
    """
    draft_length, stop = checked_options(model.config, max_new_tokens, draft_length, stop, temperature, seed)
    ids, counts = padded(ids, counts, model.device)
    if bool((counts < 1).any()):
        raise ValueError(f"counts must be 1 or more, a text is continued after its last token; got {counts.tolist()}")
    cache = model.new_cache(len(ids)) if cache is None else cache
    drafting = bool(speculative and len(model.mtp) and draft_length)
    if drafting and cache.spare < draft_length:
        raise ValueError(
            f"cache must have {draft_length} spare positions to take drafts back; it has {cache.spare}; "
            "make it with model.new_cache(spare=…) or lower draft_length"
        )
    if seed >= 1 << 64:
        raise ValueError(f"seed must be 0 … 2**64 − 1; got {seed}")
    generator = torch.Generator(model.device).manual_seed(seed)
    images = {} if types is None and features is None else {"types": types, "features": features}
    output = model.prefill(ids, cache, counts, chunk=chunk, decoder=decoder, logits="last", **images)
    prompts = cache.lengths.clone()
    results = [Generation() for _ in range(cache.batch)]
    tokens = sampling.sample(output.last, temperature, generator)  # B
    going = [result.add([int(token)], max_new_tokens, stop) for result, token in zip(results, tokens, strict=True)]
    while any(going):
        if drafting:
            step = _speculate(model, tokens, going, cache, temperature, generator, draft_length)
        else:
            logits = model.decode(tokens, cache, counts=[int(row) for row in going]).last
            step = None, sampling.sample(logits, temperature, generator)[:, None], None
        drafts, following, accepted = step
        for row, result in enumerate(results):
            if going[row]:
                new = following[row] if drafts is None else [*drafts[row, : accepted[row]], following[row]]
                result.passes += 1
                if accepted is not None:
                    result.accepted.append(int(accepted[row]))
                going[row] = result.add(new, max_new_tokens, stop)
        tokens = torch.tensor([result.ids[-1] for result in results], device=model.device)
    ends = prompts + torch.tensor([len(result.ids) - 1 for result in results])
    if bool((cache.lengths > ends).any()):  # a text ended inside an accepted block
        cache.rollback(torch.minimum(cache.lengths, ends))
    return results


def _speculate(model, tokens, going, cache, temperature, generator, draft_length):
    """Draft after each row's last token, verify, roll back; return (drafts [B k], following [B], accepted [B])."""
    committed = cache.lengths.clone()
    draft = dspark.draft(tokens, model, cache, lambda row, _: sampling.sample(row, temperature, generator))
    drafts = draft.ids[:, 1 : 1 + draft_length]  # B k
    fed = torch.tensor(going).long() * (1 + draft_length)
    logits = model.decode(draft.ids[:, : 1 + draft_length], cache, counts=fed).logits  # B k+1 V
    if temperature < sampling.GREEDY_BELOW:
        accepted, following = acceptance.accept_greedy(drafts, logits)
    else:
        proposed = sampling.probabilities(draft.logits[:, :draft_length], temperature)
        wanted = sampling.probabilities(logits, temperature)
        accepted, following = acceptance.accept(drafts, proposed, wanted, generator)
    accepted = accepted.cpu()
    cache.rollback(torch.where(torch.tensor(going), committed + 1 + accepted, committed))
    return drafts, following, accepted
