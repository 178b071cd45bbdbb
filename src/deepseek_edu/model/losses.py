"""What training minimises: next-token cross-entropy, balance of the experts, and the drafter's three terms.

`draft_loss` is that of reference/losses.py, with gradients; `draft_loss_on_text` runs the drafter on whole texts first.

Source: report, sections 2.4.3 and 4.2.2; for the drafter DeepSpec `deepspec/modeling/dspark/loss.py`.
"""

import torch
from torch import nn

from deepseek_edu.model import dspark, moe, storage
from deepseek_edu.model.norms import precise
from deepseek_edu.model.span import Span
from deepseek_edu.reference import losses as rules

GAMMA, FACTORS = rules.GAMMA, rules.FACTORS


def next_token_loss(logits, ids, counts=None):
    """Return the mean cross-entropy of each token given those before it, a scalar; 0 where no token follows another.

    Args:
        logits: [B T V]; ids: int64 [B T].
        counts: tokens of each row [B], or None for T; padding does not count.
    """
    targets = ids[:, 1:].clone()
    if counts is not None:
        places = torch.arange(1, ids.shape[1], device=ids.device)
        targets[places >= torch.as_tensor(counts, device=ids.device)[:, None]] = -100
    flat = precise(logits[:, :-1]).flatten(0, 1)
    total = nn.functional.cross_entropy(flat, targets.flatten(), ignore_index=-100, reduction="sum")
    return total / (targets != -100).sum().clamp_min(1)


def balance_loss(routing, batch, weight=1e-4):
    """Return the sequence balance loss summed over layers, the mean over sequences.

    Args:
        routing: Output.routing of a batch of full rows: (scores [B·T E], experts [B·T k]) of each layer.
        batch: B.
        weight: report: 1e-4.

    Raises:
        ValueError: the tokens are no `batch` rows of one length.
    """
    if any(len(scores) % batch for scores, _ in routing):
        raise ValueError(f"routing must be of {batch} full rows; got {len(routing[0][0])} tokens; leave padding out")
    losses = [
        moe.sequence_balance_loss(some, chosen, weight)
        for scores, experts in routing
        for some, chosen in zip(scores.chunk(batch), experts.chunk(batch), strict=True)
    ]
    return torch.stack(losses).sum() / batch


def cross_entropy(logits, targets, weights=None):
    """Return the mean of −log p(target), a scalar in nats; 0 if all weights are 0.

    Args:
        logits: (…, V).
        targets: integers (…).
        weights: (…) or None for equal weights; their sum divides, so 0 leaves a position out.

    Raises:
        ValueError: targets are no token ids of the shape of the logits without V.
    """
    rules.target_ids(targets.cpu().numpy(), logits.shape)
    losses = -precise(logits).log_softmax(dim=-1).gather(-1, targets.long()[..., None])[..., 0]
    return _weighted_mean(losses, torch.ones_like(losses) if weights is None else weights)


def _weighted_mean(values, weights):
    return (values * weights).sum() / weights.sum().clamp_min(1e-20)


def acceptance_rate(draft_logits, target_logits):
    """Return the probability that a draft from softmax(draft) stands against softmax(target): (…) from (…, V) both."""
    difference = precise(draft_logits).softmax(dim=-1) - precise(target_logits).softmax(dim=-1)
    return 1 - 0.5 * difference.abs().sum(dim=-1)


def position_weights(block, gamma):
    """Return e^(−k/gamma) for the drafts k = 0 … block − 1 of a block, float64 [block]; equal weights for gamma 0."""
    return torch.from_numpy(rules.position_weights(block, gamma))


def draft_loss(draft_logits, target_logits, targets, confidence, mask=None, gamma=GAMMA, factors=FACTORS):
    """Return the drafter's loss and its parts, scalars with gradients to draft_logits and confidence.

    Args:
        draft_logits: (…, block, V), with the bigram bias of the true left neighbours.
        target_logits: (…, block, V), the backbone's; no gradient reaches them.
        targets: integers (…, block), the tokens that followed.
        confidence: (…, block), logits of the confidence head; what they should predict is taken without gradient.
        mask: bool (…, block), positions that count; all by default.
        gamma: decay over the positions of a block, 0 for none.
        factors: of cross-entropy, distance and confidence.

    Returns:
        dict: cross_entropy, distance (mean of Σ|P − Q|), confidence (binary cross-entropy), loss (their weighted sum).

    Raises:
        ValueError: shapes that do not belong together, or targets that are no token ids.
    """
    shapes = [x.shape for x in (draft_logits, target_logits, confidence)]
    rules.check_draft_shapes(*shapes, None if mask is None else mask.shape)
    rate = acceptance_rate(draft_logits, target_logits.detach())  # … block
    weights = position_weights(rate.shape[-1], gamma).to(rate).expand_as(rate)
    if mask is not None:
        weights = weights * mask
    wanted, given = rate.detach(), confidence.to(rate.dtype)
    sure = nn.functional.binary_cross_entropy_with_logits(given, wanted, reduction="none")
    parts = {
        "cross_entropy": cross_entropy(draft_logits, targets, weights),
        "distance": _weighted_mean(2 * (1 - rate), weights),
        "confidence": _weighted_mean(sure, weights),
    }
    return {**parts, "loss": sum(factor * part for factor, part in zip(factors, parts.values(), strict=True))}


def draft_loss_on_text(model, ids, output, anchors, gamma=GAMMA, factors=FACTORS):
    """Return the drafter's loss on whole sequences, with the text as the neighbours to the left (teacher forcing).

    Args:
        model: model.Model.
        ids: int64 [B T].
        output: Output of `model(ids)`; its main_hidden and logits are used without gradient, so the backbone is frozen.
        anchors: positions p, at least 1 and at most T − 1 − block: a block is drafted after the tokens 0 … p − 1,
            beginning with token p.
        gamma, factors: of `draft_loss`.

    Returns:
        dict of `draft_loss`, over all rows and anchors.

    Raises:
        ValueError: the model has no drafter, or an anchor leaves no context or no target.
    """
    if not len(model.mtp):
        raise ValueError("the model has no draft stages to train (config.n_mtp_layers is 0)")
    block, tokens = model.config.dspark_block_size, ids.shape[1]
    if not len(anchors) or min(anchors) < 1 or max(anchors) > tokens - 1 - block:
        raise ValueError(f"anchors must be 1 … {tokens - 1 - block} for {tokens} tokens; got {list(anchors)}")
    main_hidden, logits = output.main_hidden.detach(), output.logits.detach()
    made = [
        (*_teacher_forced(model, ids, main_hidden, p), logits[:, p : p + block], ids[:, p + 1 : p + 1 + block])
        for p in anchors
    ]
    drafted, confidence, target, followed = (torch.cat(some) for some in zip(*made, strict=True))  # anchors·B block …
    return draft_loss(drafted, target, followed, confidence, gamma=gamma, factors=factors)


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
    streams = model.embed(given).detach()[:, :, None].repeat(1, 1, config.hc_mult, 1)
    hidden = dspark.rows_through_stages(streams, rows, model, _Context(model, context, before))
    last = model.mtp[-1]
    neighbours = last.markov_head.embed(ids[:, anchor : anchor + block])  # B block rank
    base = nn.functional.linear(precise(last.norm(hidden)), precise(model.head.weight.detach()))
    confidence = last.confidence_head.proj(torch.cat([hidden, neighbours], dim=-1))[..., 0]
    return base + last.markov_head.head(neighbours), confidence


class _Context:
    """The drafter's windows of one block, with gradients: what `rows_through_stages` reads of a cache."""

    def __init__(self, model, main_hidden, span):
        plain = storage.PlainRows(model.config.head_dim, model.dtype)
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
