"""Mixture of experts: a router picks a few small networks for each token; one shared network always runs.

The experts' matrices lie in two stacked parameters, [E 2 F C] and [E C F], so that an optimiser sees two tensors and a
GPU two grouped products; in a state dict they have the released names, `experts.3.w1.weight`.

Tokens are sorted by expert, so every expert works on one contiguous stretch. A single token loops over its own experts.

Source: report, sections 2.2 and 4.2.2; reference `Gate`, `Expert`, `MoE`; formulas in reference/moe.py.
"""

import torch
from torch import nn

from deepseek_edu.model import one_token, selection
from deepseek_edu.model.linear import Stacked, at_least_float32, outside_autocast, product, suits_numpy
from deepseek_edu.model.norms import precise


def router_scores(logits, score_func="sqrtsoftplus"):
    """Return the positive score of every expert, (…, E) from logits (…, E).

    Raises:
        ValueError: score_func is none of "sqrtsoftplus", "sigmoid", "softmax".
    """
    if score_func == "sqrtsoftplus":
        return nn.functional.softplus(logits, threshold=40.0).sqrt()
    if score_func == "sigmoid":
        return logits.sigmoid()
    if score_func == "softmax":
        return logits.softmax(dim=-1)
    raise ValueError(f"score_func must be sqrtsoftplus, sigmoid or softmax; got {score_func!r}")


def route(scores, bias, k, normalise=True, scale=1.0):
    """Choose k experts for each token and weigh them.

    Args:
        scores: (…, E), positive.
        bias: [E] or (…, E); it chooses and never weighs.
        k: experts per token.
        normalise: divide the chosen scores by their sum (plus 1e-20).
        scale: factor of the weights.

    Returns:
        (experts int64 (…, k), rising; weights (…, k)).
    """
    experts = selection.top_k((scores + bias).detach(), k)  # … k
    weights = scores.gather(-1, experts)  # … k
    if normalise:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
    return experts, weights * scale


def clamped_swiglu(gate, up, limit):
    """Return SiLU(gate) · up with gate clamped from above and up on both sides; limit 0 for no clamp."""
    if limit > 0:
        gate, up = gate.clamp_max(limit), up.clamp(-limit, limit)
    return nn.functional.silu(gate) * up


class Gate(nn.Module):
    """The router: matrix [E C], a correction bias for text and one for tokens of images.

    Args:
        experts: E.
    """

    def __init__(self, experts, config, where):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(experts, config.dim, **where))
        nn.init.normal_(self.weight, std=config.dim**-0.5)
        # moved by the load (update_bias), not by a gradient
        self.bias = nn.Parameter(torch.zeros(experts, **at_least_float32(where)), requires_grad=False)
        self.bias_vl = None  # a model without a vision tower has one bias for all tokens
        if config.vision_n_layers:
            self.bias_vl = nn.Parameter(torch.zeros(experts, **at_least_float32(where)), requires_grad=False)

    @outside_autocast
    def forward(self, u, k, image_mask=None):
        """Return (scores [N E], experts [N k], weights [N k]) for tokens u [N C]; float32 or better."""
        c = self.config
        logits = product(precise(u), precise(self.weight)) / c.gate_temp  # N E
        scores = router_scores(logits, c.score_func)
        bias = self.bias
        if image_mask is not None and self.bias_vl is not None:
            bias = torch.where(image_mask[:, None], self.bias_vl, bias)
        return scores, *route(scores, bias, k, c.norm_topk_prob and k > 1, c.route_scale)


class Expert(Stacked):
    """One SwiGLU network: w13 [2 F C], that is w1 (gate) and w3 (up); w2 [C F].

    Args:
        inner: F.
    """

    def __init__(self, inner, config, where):
        super().__init__()
        self.limit = config.swiglu_limit
        self.stack("w13", (2, inner, config.dim), where)
        self.stack("w2", (config.dim, inner), where)

    def released(self):
        """Return where each released matrix lies."""
        return {"w1.weight": ("w13", 0), "w2.weight": ("w2", ...), "w3.weight": ("w13", 1)}

    def forward(self, u):
        """Return (…, C)."""
        gate, up = product(self._input(u), self.w13.flatten(0, 1)).chunk(2, dim=-1)  # … F
        return product(self._input(clamped_swiglu(gate, up, self.limit)), self.w2)


class Experts(Stacked):
    """All routed experts of a layer: w13 [E 2 F C], that is w1 (gate) and w3 (up); w2 [E C F].

    Args:
        count: E.
    """

    def __init__(self, count, config, where):
        super().__init__()
        self.count, self.limit = count, config.swiglu_limit
        self.stack("w13", (count, 2, config.moe_inter_dim, config.dim), where)
        self.stack("w2", (count, config.dim, config.moe_inter_dim), where)

    def released(self):
        """Return where each released matrix lies."""
        places = {"w1": ("w13", 0), "w2": ("w2",), "w3": ("w13", 1)}
        return {
            f"{expert}.{name}.weight": (parameter, (expert, *index))
            for name, (parameter, *index) in places.items()
            for expert in range(self.count)
        }

    def forward(self, u, experts, weights):
        """Return Σ over the chosen experts: [N C].

        Args:
            u: [N C].
            experts: int64 [N k]; weights: [N k]; the weight multiplies the hidden vector before w2.
        """
        weights = weights.to(u.dtype)
        if suits_numpy(u, self.w13) and not self.rounds_input:
            y = one_token.run_experts(u[0].numpy(), self, experts[0].tolist(), weights[0].numpy())
            return torch.from_numpy(y)[None]
        order = experts.flatten().argsort(stable=True)  # N·k, by expert
        tokens = order // experts.shape[-1]
        counts = torch.bincount(experts.flatten(), minlength=self.count)  # E
        outputs = self._sorted(u[tokens], weights.flatten()[order, None], counts)  # N·k C
        return torch.zeros_like(u).index_add(0, tokens, outputs)

    def _sorted(self, x, weights, counts):
        """Run every expert on its stretch of x [N·k C]."""
        wide = self.w13.flatten(1, 2)  # E 2F C
        x = self._input(x)
        if x.is_cuda and x.dtype == torch.bfloat16:
            ends = counts.cumsum(0).int()
            gate, up = nn.functional.grouped_mm(x, wide.mT, offs=ends).chunk(2, dim=-1)
            hidden = self._input(clamped_swiglu(gate, up, self.limit) * weights)
            return nn.functional.grouped_mm(hidden, self.w2.mT, offs=ends)
        counts, outputs = counts.tolist(), []
        stretches = zip(x.split(counts), weights.split(counts), wide.unbind(), self.w2.unbind(), strict=True)
        for some, weight, first, second in stretches:
            if len(some):
                gate, up = product(some, first).chunk(2, dim=-1)  # n F
                outputs.append(product(self._input(clamped_swiglu(gate, up, self.limit) * weight), second))
        return torch.cat(outputs) if outputs else x


class MoE(nn.Module):
    """Router, routed experts and the shared one.

    Args:
        count: routed experts; k: chosen for each token (the draft stages use other numbers than the backbone).
    """

    def __init__(self, count, k, config, where):
        super().__init__()
        self.k = k
        self.gate = Gate(count, config, where)
        self.experts = Experts(count, config, where)
        shared = config.n_shared_experts
        self.shared_experts = Expert(shared * config.moe_inter_dim, config, where) if shared else None

    def forward(self, u, valid=None, image_mask=None, routing=None):
        """Route and run.

        Args:
            u: [B T C].
            valid: bool [B T], false for padding, which is not run; None if there is none.
            image_mask: bool [B T] of tokens inside an image span, or None.
            routing: list that takes in a `Routing` of this layer, or None.

        Returns:
            [B T C]; zeros for padding.
        """
        tokens = u.flatten(0, 1) if valid is None else u[valid]  # N C
        images = None
        if image_mask is not None:
            images = image_mask.flatten() if valid is None else image_mask[valid]
        scores, experts, weights = self.gate(tokens, self.k, images)
        if routing is not None:
            routing.append((scores, experts))
        y = self.experts(tokens, experts, weights)
        if self.shared_experts is not None:
            y = y + self.shared_experts(tokens)
        if valid is None:
            return y.view_as(u)
        return torch.zeros_like(u).masked_scatter(valid[..., None], y)


# Training


def expert_load(experts, count):
    """Return how many tokens each expert got: int64 [E] from experts (…, k)."""
    return torch.bincount(experts.flatten(), minlength=count)


@torch.no_grad()
def update_bias(bias, load, speed=0.001):
    """Move a correction bias in place against the load: down where an expert got more than the mean, up where less.

    Args:
        bias: [E], text or image; load: [E], tokens per expert of that modality.
        speed: size of the step (report: 0.001).
    """
    load = load.double()  # counts are more than narrow types can tell apart
    bias -= (speed * torch.sign(load - load.mean())).to(bias.dtype)


def sequence_balance_loss(scores, experts, weight=1e-4):
    """Return the loss that keeps the experts of one sequence balanced, a scalar.

    Args:
        scores: [T E]; experts: [T k], both of one sequence.
        weight: factor of the loss (report: 1e-4); it is the loss when all experts are used evenly.
    """
    tokens, count = scores.shape
    frequency = expert_load(experts, count).to(scores.dtype) * (count / (experts.shape[-1] * tokens))  # E
    share = (scores / scores.sum(dim=-1, keepdim=True)).mean(dim=0)  # E
    return weight * (frequency * share).sum()
