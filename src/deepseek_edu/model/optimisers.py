"""Three optimisers, each for the parameters it suits.

    matrices                       Muon: momentum, then the nearest orthogonal matrix; head by head for queries
    gains, biases, sinks, …        AdamW; only the gains of norms decay
    embeddings, heads, tables      momentum, then rows and columns balanced in turn (Sinkhorn)

An orthogonal update moves every direction of a matrix alike. Its size is set so that its root mean square is 0.18,
about that of AdamW, so that one learning rate serves all. Rows of tables that hardly got a gradient are left alone.

Source: report, sections 2.5 and 4.2.2 (all constants); Newton–Schulz in two stages: V4 report, section 2.4. Stacked
matrices of routed experts are taken one by one.
"""

import torch

from deepseek_edu.model.norms import precise

UPDATE_RMS = 0.18  # root mean square of an update by Muon, over the learning rate
STEPS = ((3.4445, -4.7750, 2.0315),) * 8 + ((2.0, -1.5, 0.5),) * 2
"""Of x → ax + bx³ + cx⁵: eight steps drive singular values between 0 and 1 towards 1 fast, two bring them to 1."""


def orthogonalise(matrices):
    """Return matrices (…, m, n) with all singular values 1 and the same singular vectors.

    Args:
        matrices: (…, m, n), float32 or better; zeros stay zeros.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-20)
    for a, b, c in STEPS:
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


def balance(matrix, iterations=11, threshold=1e-3):
    """Return a matrix [n m] whose rows all have length 1 and whose columns nearly equal lengths.

    Rows shorter than threshold times the mean row count as not touched and become 0. Rows and columns are divided by
    their lengths in turn, `iterations` times, beginning and ending with rows.

    >>> balance(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = matrix.norm(dim=1, keepdim=True)
    matrix = torch.where(lengths > threshold * lengths.mean(), matrix, 0)
    for step in range(iterations):
        dimension = 1 if step % 2 == 0 else 0
        matrix = matrix / matrix.norm(dim=dimension, keepdim=True).clamp_min(1e-20)
    return matrix


class _WithMomentum(torch.optim.Optimizer):
    """Nesterov momentum; what becomes of the momentum is told by `_update`."""

    def __init__(self, parameters, lr, momentum, weight_decay, **others):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **others})

    def load_state_dict(self, state_dict):
        """Continue with a state that `state_dict` gave; the momentum stays in float32 or better, as it was."""
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for number, parameter in zip(numbers, parameters, strict=True):
            if number in state_dict["state"]:
                momentum = state_dict["state"][number]["momentum"]
                self.state[parameter]["momentum"] = momentum.to(parameter.device, copy=True)

    @torch.no_grad()
    def step(self, closure=None):
        """Take one step. Returns the closure's loss, or None."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(precise(parameter))
                gradient = precise(parameter.grad)
                state["momentum"].lerp_(gradient, 1 - group["momentum"])
                ahead = gradient.lerp(state["momentum"], group["momentum"])
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(self._update(ahead, group).to(parameter.dtype), alpha=-group["lr"])
        return loss


class Muon(_WithMomentum):
    """Orthogonalised momentum for matrices (…, m, n).

    Args:
        parameters: matrices, or groups with an own `heads`: the rows are cut into that many matrices first.
        lr: learning rate.
        momentum, weight_decay: report: 0.95 and 0.1.
    """

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(parameters, lr, momentum, weight_decay, heads=1)

    def _update(self, ahead, group):
        shape = ahead.shape
        if group["heads"] > 1:
            ahead = ahead.unflatten(-2, (group["heads"], -1))
        size = UPDATE_RMS * max(ahead.shape[-2:]) ** 0.5  # an orthogonal m × n matrix has mean square 1/max(m, n)
        return (orthogonalise(ahead) * size).reshape(shape)


class BalancedMomentum(_WithMomentum):
    """Momentum with balanced rows and columns, for tables [rows width]; no decay.

    Args:
        parameters: matrices.
        lr: learning rate (report: of Engram tables five times that of the others).
        momentum: 0.95.
        iterations, threshold: of `balance`; report: 11 and 1e-3.
    """

    def __init__(self, parameters, lr, momentum=0.95, iterations=11, threshold=1e-3):
        super().__init__(parameters, lr, momentum, 0.0, iterations=iterations, threshold=threshold)

    def _update(self, ahead, group):
        size = UPDATE_RMS * ahead.shape[1] ** 0.5  # a row of length 1 has root mean square 1/√n
        return balance(ahead, group["iterations"], group["threshold"]) * size


def split_parameters(model):
    """Sort a model's trainable parameters by the optimiser they get.

    Returns:
        dict: "matrices" {name: parameter}, "queries" (matrices whose rows are heads) {name: (parameter, heads)},
        "tables" (embeddings and heads), "engram_tables", "gains" (of norms), "others" (biases, sinks, scales).
    """
    config = model.config
    found = {"matrices": {}, "queries": {}, "tables": {}, "engram_tables": {}, "gains": {}, "others": {}}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.endswith("engram.embed.weight"):
            found["engram_tables"][name] = parameter
        elif name.endswith(("embed.weight", "markov_head.head.weight")) or name == "head.weight":
            found["tables"][name] = parameter
        elif name.endswith("attn.wq_b.weight"):
            found["queries"][name] = parameter, config.n_heads
        elif name.endswith("indexer.wq_b.weight"):
            found["queries"][name] = parameter, config.index_n_heads
        elif name.endswith(("norm.weight", "norm1.weight", "norm2.weight", "q_weight", "k_weight")):
            found["gains"][name] = parameter
        elif parameter.ndim < 2:
            found["others"][name] = parameter
        else:
            found["matrices"][name] = parameter
    return found


def make_optimisers(model, lr, trained=lambda name: True):
    """Return the optimisers of a model: list of Muon, BalancedMomentum and AdamW; call step on each.

    Args:
        model: model.Model; parameters that are not trained get requires_grad=False.
        lr: learning rate of all; Engram tables take five times as much.
        trained: function from a parameter's name to whether it is trained, such as
            `lambda name: ".indexer." not in name`.

    Raises:
        ValueError: the model is of float16.
    """
    if model.dtype == torch.float16:
        raise ValueError(
            "the model must be of float32 or bfloat16 to be trained; got float16, in which AdamW's eps is 0"
        )
    for name, parameter in model.named_parameters():
        if not trained(name):
            parameter.requires_grad_(False)
    split = split_parameters(model)
    queries = {}
    for parameter, heads in split["queries"].values():
        queries.setdefault(heads, []).append(parameter)
    matrices = [{"params": list(split["matrices"].values())}]
    matrices += [{"params": parameters, "heads": heads} for heads, parameters in queries.items()]
    tables = [
        {"params": list(split["tables"].values())},
        {"params": list(split["engram_tables"].values()), "lr": 5 * lr},
    ]
    others = [
        {"params": list(split["gains"].values())},
        {"params": list(split["others"].values()), "weight_decay": 0.0},
    ]

    def adamw(groups, lr):
        return torch.optim.AdamW(groups, lr, betas=(0.9, 0.95), eps=1e-20, weight_decay=0.1)

    made = []
    for kind, groups in ((Muon, matrices), (BalancedMomentum, tables), (adamw, others)):
        groups = [group for group in groups if group["params"]]
        if groups:
            made.append(kind(groups, lr))
    return made
