"""Experts of V4: chosen by a table of the token in the first layers, by the router in the others.

The weights come from the router's scores in both. The shared expert has no clamp.

Source: V4 report, section 2.1; V4 reference `Gate`, `MoE`; in words in reference/v4_model.py.
"""

import torch
from torch import nn

from deepseek_edu.model import moe
from deepseek_edu.model.linear import at_least_float32, outside_autocast, product
from deepseek_edu.model.norms import precise


class V4Experts(moe.Experts):
    """Routed experts; without gradients, on a CPU, each takes its tokens and adds its outputs by itself.

    So no array is as large as k times the input.

    Args:
        count: E.
    """

    def forward(self, u, experts, weights):
        """Return Σ over the chosen experts: [N C]; arguments of moe.Experts."""
        if torch.is_grad_enabled() or u.is_cuda or len(u) == 1:
            return super().forward(u, experts, weights)
        order = experts.flatten().argsort(stable=True)  # N·k, by expert
        counts = torch.bincount(experts.flatten(), minlength=self.count).tolist()  # E
        tokens = (order // experts.shape[-1]).split(counts)
        shares = weights.to(u.dtype).flatten()[order, None].split(counts)
        y = torch.zeros_like(u)
        for expert, (rows, share) in enumerate(zip(tokens, shares, strict=True)):
            if len(rows):
                gate, up = product(u.index_select(0, rows), self.w13[expert].flatten(0, 1)).chunk(2, dim=-1)  # n F
                hidden = moe.clamped_swiglu(gate, up, self.limit).mul_(share)
                y.index_add_(0, rows, product(hidden, self.w2[expert]))
        return y


class V4Gate(nn.Module):
    """The router: matrix [E C], and a correction bias [E] or the table tid2eid, int64 [V k].

    Args:
        experts: E.
        k: experts of a token.
        hash_routed: whether the table, not the scores, chooses.
    """

    def __init__(self, experts, k, config, hash_routed, where):
        super().__init__()
        self.config, self.k, self.hash_routed = config, k, hash_routed
        self.weight = nn.Parameter(torch.empty(experts, config.dim, **where))
        nn.init.normal_(self.weight, std=config.dim**-0.5)
        if hash_routed:
            table = torch.arange(config.vocab_size * k, device=where["device"]) % experts
            self.register_buffer("tid2eid", table.view(config.vocab_size, k))
        else:
            self.bias = nn.Parameter(torch.zeros(experts, **at_least_float32(where)), requires_grad=False)

    @outside_autocast
    def forward(self, u, ids):
        """Return (scores [N E], experts int64 [N k], weights [N k]) for tokens u [N C] with ids [N], or None."""
        c = self.config
        logits = product(precise(u), precise(self.weight))  # N E
        scores = moe.router_scores(logits if c.gate_temp == 1 else logits / c.gate_temp, c.score_func)
        if not self.hash_routed:
            return scores, *moe.route(scores, self.bias, self.k, c.score_func != "softmax", c.route_scale)
        experts = self.tid2eid[ids]  # N k
        weights = scores.gather(-1, experts)
        return scores, experts, weights * (c.route_scale / weights.sum(dim=-1, keepdim=True))


class V4MoE(nn.Module):
    """Router, routed experts and the shared one.

    Args:
        count: routed experts; k: chosen for each token.
        hash_routed: whether a table chooses.
    """

    def __init__(self, count, k, config, hash_routed, where):
        super().__init__()
        self.gate = V4Gate(count, k, config, hash_routed, where)
        self.experts = V4Experts(count, config, where)
        self.shared_experts = moe.Expert(config.n_shared_experts * config.moe_inter_dim, config, where)
        self.shared_experts.limit = 0.0

    def forward(self, u, ids=None, valid=None, routing=None):
        """Route and run.

        Args:
            u: [B T C]; ids: int64 [B T], which only a table needs.
            valid: bool [B T], false for padding, which is not run; None if there is none.
            routing: list that takes in (scores, experts) of this layer, or None.

        Returns:
            [B T C]; zeros for padding.
        """
        tokens = u.flatten(0, 1) if valid is None else u[valid]  # N C
        if self.gate.hash_routed:
            ids = ids.flatten() if valid is None else ids[valid]  # N
        scores, experts, weights = self.gate(tokens, ids)
        if routing is not None:
            routing.append((scores, experts))
        y = self.experts(tokens, experts, weights) + self.shared_experts(tokens)
        if valid is None:
            return y.view_as(u)
        return torch.zeros_like(u).masked_scatter(valid[..., None], y)
