"""What training minimises: next-token cross entropy, balance of the experts, and the drafter's three losses.

Source: report, sections 2.4.3 and 4.2.2; for the drafter DeepSpec `deepspec/modeling/dspark/loss.py` (cross entropy,
total variation, confidence; positions further right count less).
"""

from dataclasses import dataclass

import torch
from torch import nn

from deepseek_edu.model import dspark, moe
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.span import Span


def next_token_loss(logits, ids, counts=None):
    """Return the mean cross entropy of each token given those before it, a scalar.

    Args:
        logits: [B T V]; ids: int64 [B T].
        counts: tokens of each row [B], or None for T; padding does not count.
    """
    targets = ids[:, 1:].clone()
    if counts is not None:
        places = torch.arange(1, ids.shape[1], device=ids.device)
        targets[places >= torch.as_tensor(counts, device=ids.device)[:, None]] = -100
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(), ignore_index=-100)


def balance_loss(routing, batch, weight=1e-4):
    """Return the sequence balance loss summed over layers, the mean over sequences.

    Args:
        routing: Output.routing of a batch of full rows: (scores [B·T E], experts [B·T k]) of each layer.
        batch: B.
        weight: report: 1e-4.
    """
    losses = [
        moe.sequence_balance_loss(some, chosen, weight)
        for scores, experts in routing
        for some, chosen in zip(scores.chunk(batch), experts.chunk(batch), strict=True)
    ]
    return torch.stack(losses).sum() / batch


@dataclass(frozen=True)
class DraftLoss:
    """The parts of the drafter's loss, scalars."""

    cross_entropy: torch.Tensor  # of the drafts against the text
    variation: torch.Tensor  # half the L1 distance between draft and target distributions
    confidence: torch.Tensor  # binary cross entropy against the probability of acceptance

    @property
    def total(self):
        """Their sum."""
        return self.cross_entropy + self.variation + self.confidence


def draft_loss(model, ids, output, anchors, gamma=4.0):
    """Return the drafter's loss on whole sequences, with the text as the neighbours to the left (teacher forcing).

    Args:
        model: model.Model.
        ids: int64 [B T].
        output: Output of `model(ids)`; its main_hidden and logits are used without gradient, so the backbone is frozen.
        anchors: positions p, at least 1 and at most T − 1 − block: a block is drafted after the tokens 0 … p − 1,
            beginning with token p.
        gamma: block position k counts exp(−k/gamma).

    Returns:
        DraftLoss, means over rows and anchors.

    Raises:
        ValueError: an anchor leaves no context or no target.
    """
    block = model.config.dspark_block_size
    batch, tokens = ids.shape
    if not len(anchors) or min(anchors) < 1 or max(anchors) > tokens - 1 - block:
        raise ValueError(f"anchors must be 1 … {tokens - 1 - block} for {tokens} tokens; got {list(anchors)}")
    weights = torch.exp(-torch.arange(block, device=ids.device) / gamma)
    weights = weights / weights.sum()
    main_hidden, target = output.main_hidden.detach(), output.logits.detach()
    parts = []
    for anchor in anchors:
        logits, confidence = _teacher_forced(model, ids, main_hidden, anchor)
        wanted = ids[:, anchor + 1 : anchor + 1 + block]  # B block
        entropy = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(batch, -1)
        p, q = target[:, anchor : anchor + block].softmax(dim=-1), logits.softmax(dim=-1)
        distance = 0.5 * (p - q).abs().sum(dim=-1)  # B block; 1 − distance is the probability of acceptance
        accepted = (1 - distance).detach().to(confidence.dtype)
        sure = nn.functional.binary_cross_entropy_with_logits(confidence, accepted, reduction="none")
        parts.append(torch.stack([(loss * weights).sum(dim=-1).mean() for loss in (entropy, distance, sure)]))
    return DraftLoss(*torch.stack(parts).mean(dim=0))


def _teacher_forced(model, ids, main_hidden, anchor):
    """Biased logits and confidences of the block that begins with token `anchor`."""
    config, block = model.config, model.config.dspark_block_size
    batch = len(ids)
    context = main_hidden[:, max(0, anchor - config.window_size) : anchor]  # B P targets·C
    first = torch.full((batch,), anchor - context.shape[1])
    whole = torch.full((batch,), context.shape[1])
    before = Span(first, whole, context.shape[1], config, model.device, model.dtype)
    rows = Span(first + whole, torch.full((batch,), block), block, config, model.device, model.dtype)
    noise = torch.full((batch, block - 1), config.dspark_noise_token_id, device=ids.device)
    given = torch.cat([ids[:, anchor : anchor + 1], noise], dim=1)
    streams = model.embed(given).detach()[:, :, None].expand(-1, -1, config.hc_mult, -1)
    hidden = dspark.rows_through_stages(streams, rows, model, _Context(model, context, before))
    last = model.mtp[-1]
    neighbours = last.markov_head.embed(ids[:, anchor : anchor + block])  # B block rank
    base = nn.functional.linear(last.norm(hidden), model.head.weight.detach())
    confidence = last.confidence_head.proj(torch.cat([hidden, neighbours], dim=-1))[..., 0]
    return base + last.markov_head.head(neighbours), confidence


class _Context:
    """The drafter's windows of one block, with gradients: what `rows_through_stages` reads of a cache."""

    def __init__(self, model, main_hidden, span):
        plain = Cache(model.config, len(main_hidden), False, model.dtype, model.device, live=True).window_format
        first = model.mtp[0]
        m = first.main_norm(first.main_proj(main_hidden))  # B P C
        entries = [stage.attn.entry(m, span.rotation(0)) for stage in model.mtp]
        self.draft_windows = [_Past(entry, span, plain) for entry in entries]


class _Past:
    def __init__(self, entries, span, row_format):
        self.entries, self.start, self.row_format = entries, span.first, row_format

    def past(self, span, back):
        """The last `back` entries, zeros in front where there are fewer."""
        return nn.functional.pad(self.entries, (0, 0, back - self.entries.shape[1], 0))
