"""Speculative acceptance for all rows at once: which drafts stand, and what takes the place of the first that does not.

Draft i stands with probability min(1, P_i(y_i)/Q_i(y_i)); at the first that falls, a token is drawn from max(P_i − Q_i,
0) normalised; if none falls, one more comes from the last P. What is emitted has the distribution of plain decoding.

Source: rejection sampling (arXiv 2211.17192); DeepSpec `sampling.py`; in words in reference/acceptance.py.
"""

import torch

from deepseek_edu.model import sampling


def residual(target, draft):
    """Return max(P − Q, 0) normalised over the last dimension; P where nothing is left."""
    left = (target - draft).clamp_min(0)
    total = left.sum(dim=-1, keepdim=True)
    return torch.where(total <= 1e-8, target, left / total.clamp_min(1e-30))


def accept(drafts, proposed, wanted, generator=None):
    """Accept a prefix of the drafts of each row and return what follows it.

    Args:
        drafts: int64 [B k].
        proposed: Q [B k V], those the drafts were drawn from.
        wanted: P [B k+1 V].
        generator: torch.Generator.

    Returns:
        (accepted int64 [B], 0 … k; the token after them, int64 [B]).

    Raises:
        ValueError: the numbers of drafts and distributions do not belong together.
    """
    batch, k = drafts.shape
    if proposed.shape[:2] != (batch, k) or wanted.shape[:2] != (batch, k + 1):
        raise ValueError(
            f"drafts {tuple(drafts.shape)} need as many draft distributions and one target distribution more in each "
            f"row; got {tuple(proposed.shape)} and {tuple(wanted.shape)}"
        )
    p, q = (table[:, :k].gather(-1, drafts[..., None])[..., 0] for table in (wanted, proposed))  # B k
    stands = torch.rand(batch, k, generator=generator, device=p.device, dtype=p.dtype) * q < p
    accepted = stands.long().cumprod(dim=-1).sum(dim=-1)  # B
    padded = torch.cat([proposed, torch.zeros_like(wanted[:, :1])], dim=1)  # the last P has no Q to take away
    row = torch.arange(batch, device=p.device)
    return accepted, sampling.draw(residual(wanted[row, accepted], padded[row, accepted]), generator)


def accept_greedy(drafts, target_logits):
    """Accept while a draft is the backbone's own choice: (accepted [B], the choice after them [B]).

    Args:
        drafts: int64 [B k]; target_logits: [B k+1 V].
    """
    choices = target_logits.argmax(dim=-1)  # B k+1
    accepted = (drafts == choices[:, :-1]).long().cumprod(dim=-1).sum(dim=-1)
    return accepted, choices.gather(1, accepted[:, None])[:, 0]
