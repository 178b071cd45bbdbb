"""What a forward pass returns, and the outputs of several chunks as one.

Source: our own.
"""

from dataclasses import dataclass, field

import torch

from deepseek_edu.model.span import Span


@dataclass(frozen=True)
class Output:
    """What a forward pass returns, for the tokens of `span`: all of them unless the decoder was skipped."""

    logits: torch.Tensor | None  # [B R V]; [B 1 V] with logits="last"; None with logits="none"
    span: Span  # of the rows of "all" logits
    main_hidden: torch.Tensor  # [B R' targets·C], what the drafter reads; R' ≥ R
    choices: dict  # layer -> int64 [B T K], entries chosen
    hashes: torch.Tensor | None  # int64 [B T modules rows], of all tokens
    layer_tokens: int  # how many tokens all layers together have processed
    hidden: torch.Tensor | None = None  # [B R C], before the last norm
    routing: list = field(default_factory=list)  # (scores [N E], experts [N k]) of each layer, if asked for

    @property
    def last(self):
        """Logits of each row's last token, [B V]."""
        return self.span.take_last(self.logits, 1)[:, 0] if self.logits.shape[1] > 1 else self.logits[:, 0]


def require_logits(logits):
    """Raise ValueError unless logits, what a caller asked for, is "all", "last" or "none"."""
    if logits not in ("all", "last", "none"):
        raise ValueError(f"logits must be 'all', 'last' or 'none'; got {logits!r}")


def joined(outputs, logits):
    """Return one Output for the outputs of a prefill's chunks, in order; its logits are "all", "last" or "none"."""
    counts = torch.stack([output.span.counts for output in outputs]).sum(dim=0)
    first = outputs[0].span
    span = Span(first.first, counts, sum(o.span.width for o in outputs), first.config, first.device, first.dtype)
    if logits == "all":
        values = torch.cat([output.logits for output in outputs], dim=1)
    else:
        values = outputs[0].logits
        for output in outputs[1:] if logits == "last" else ():
            fed = (output.span.counts > 0).to(values.device)
            values = torch.where(fed[:, None, None], output.logits, values)
    last = outputs[-1]
    for_drafter = [output.main_hidden for output in outputs]
    main_hidden = None if for_drafter[0] is None else torch.cat(for_drafter, dim=1)
    hidden = torch.cat([output.hidden for output in outputs], dim=1)
    hashes = None if last.hashes is None else torch.cat([output.hashes for output in outputs], dim=1)
    tokens = sum(output.layer_tokens for output in outputs)
    return Output(values, span, main_hidden, last.choices, hashes, tokens, hidden)
