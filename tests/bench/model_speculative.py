"""What an accepted token costs when blocks are drafted and verified, against plain decoding, at measured acceptance.

A random model's drafts are never right, so a small model and its drafter are trained here first, on a text made by a
rule: sentences out of a small stock, one after another, with some tokens exchanged at random. The backbone learns the
text, then the drafter learns it with the backbone frozen (model/losses.py). What is measured is the generation of both:
greedy, the same prompts, the same tokens.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import torch

from deepseek_edu.model import losses, optimisers
from deepseek_edu.model.model import Model
from tests.bench.model_decode import small_config
from tests.bench.rows import CLOCK, Row, ratio

SEED = 0
VOCABULARY, STOCK, SENTENCE, EXCHANGED = 64, 8, 12, 0.02
LENGTH, BATCH = 48, 4
BACKBONE_STEPS, DRAFTER_STEPS = 80, 80
NEW, ROUNDS = 96, 5
SETTINGS = {
    "speculative: text": f"{STOCK} sentences of {SENTENCE} tokens in random order, {EXCHANGED:.0%} of tokens exchanged",
    "speculative: steps of training, backbone and drafter": (BACKBONE_STEPS, DRAFTER_STEPS),
    "speculative: tokens in a step": BATCH * LENGTH,
    "speculative: new tokens": NEW,
    "speculative: rounds": ROUNDS,
}


class Text:
    """Endless text by a rule."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        stock = torch.Generator().manual_seed(SEED)  # the same sentences in every text
        self.stock = torch.randint(8, VOCABULARY, (STOCK, SENTENCE), generator=stock)

    def rows(self, batch, length):
        """Ids [batch length]."""
        count = -(-length // SENTENCE) + 1
        ids = self.stock[torch.randint(STOCK, (batch, count), generator=self.generator)].flatten(1)[:, :length]
        exchanged = torch.rand(ids.shape, generator=self.generator) < EXCHANGED
        return torch.where(exchanged, torch.randint(8, VOCABULARY, ids.shape, generator=self.generator), ids)


def make_model():
    """V4.1 in eight layers and three draft stages, small enough to train in a minute."""
    torch.manual_seed(SEED)
    return Model(
        small_config(
            vocab_size=VOCABULARY,
            dim=128,
            n_mtp_layers=3,
            n_heads=4,
            head_dim=32,
            q_lora_rank=32,
            o_lora_rank=32,
            rope_head_dim=16,
            window_size=32,
            index_n_heads=4,
            index_head_dim=32,
            moe_inter_dim=64,
            n_routed_experts=4,
            n_activated_experts=2,
            compress_ratios=(0, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0),
            dspark_target_layer_ids=(5, 6, 7),
            dspark_noise_token_id=2,
            dspark_markov_rank=16,
            dspark_n_routed_experts=4,
            dspark_n_activated_experts=2,
        )
    )


def train(model, part, steps, trainable):
    """Train "backbone" or "drafter" for so many steps; the mean loss of the last ten."""
    for parameter in trainable:
        parameter.requires_grad_(True)
    wanted = {"backbone": lambda n: "mtp." not in n and ".indexer." not in n, "drafter": lambda n: n.startswith("mtp.")}
    made = optimisers.make_optimisers(model, 0.01, trained=wanted[part])
    text, found = Text(SEED + 1), []
    for _ in range(steps):
        ids = text.rows(BATCH, LENGTH)
        if part == "backbone":
            loss = losses.next_token_loss(model(ids).logits, ids)
        else:
            with torch.no_grad():
                output = model(ids)
            anchors = torch.randint(1, LENGTH - 1 - model.config.dspark_block_size, (4,), generator=text.generator)
            parts = losses.draft_loss_on_text(model, ids, output, sorted(anchors.tolist()), factors=(1, 0.5, 1))
            loss = parts["loss"]
        loss.backward()
        for optimiser in made:
            optimiser.step()
            optimiser.zero_grad()
        found.append(float(loss.detach()))
    return statistics.mean(found[-10:])


def measure(model, what):
    """Seconds per new token, plain and speculative, taken in turn; (row data, ratio, accepted drafts per pass)."""
    prompt, made = Text(SEED + 2).rows(1, LENGTH), {}

    def generate(speculative):
        cache = model.new_cache(1, quantized=False)
        model.prefill(prompt[:, :-1], cache, logits="none")
        began = CLOCK()
        options = {"speculative": speculative, "stop": (), "cache": cache}
        made[speculative] = model.generate(prompt[:, -1:], NEW, **options)[0]
        return CLOCK() - began

    pairs = [(generate(False), generate(True)) for _ in range(ROUNDS + 1)][1:]
    if made[False].ids != made[True].ids:
        raise ValueError(f"greedy speculative decoding must give the plain text; {what}: {made[False].ids[:20]} …")
    plain, drafted = ([1e3 * taken / NEW for taken in column] for column in zip(*pairs, strict=True))
    accepted = statistics.mean(made[True].accepted)
    return plain, drafted, accepted, made[True].passes


def rows() -> Iterator[Row]:
    """Cost per token with drafts that are nearly always wrong, and with those of a trained drafter."""
    model = make_model()
    block = model.config.dspark_block_size
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for what in ("untrained", "trained"):
        learned = ""
        if what == "trained":
            loss = train(model, "backbone", BACKBONE_STEPS, trainable)
            drafter_loss = train(model, "drafter", DRAFTER_STEPS, trainable)
            learned = f"; losses after training {loss:.2f} and {drafter_loss:.2f}"
        plain, drafted, accepted, passes = measure(model, what)
        here, there = statistics.median(drafted), statistics.median(plain)
        detail = (
            f"{here:.1f} ms a token against {there:.1f} plain; {accepted:.2f} of {block} drafts accepted in each of "
            f"{passes} passes; a pass costs {here * (NEW - 1) / passes / there:.2f} plain steps{learned}"
        )
        name = f"speculative cost per token, {what} drafter"
        data = {"ms a token, plain": plain, "ms a token, speculative": drafted, "accepted drafts per pass": accepted}
        yield Row(name, ratio(drafted, plain), "× plain", None, detail, data=data)
