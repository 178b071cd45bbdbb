"""Matrices as modules: parameters without bias, random at first, so that a model can be trained.

A module may keep several released matrices in one parameter (`Stacked`): one product instead of many. In a state dict
every matrix has its released name and is a view.

The release stores most matrices in FP8 or FP4, and its kernels round what those multiply to FP8. `Model(…,
round_inputs=True)` does so, with gradients straight through; which matrices these are is told in reference/linear.py.

Source: released checkpoint, names `….weight`; reference `linear`, kernel `act_quant`.
"""

from functools import wraps

import numpy as np
import torch
from torch import nn

from deepseek_edu.model import quant
from deepseek_edu.reference import linear as rules

FEW_ROWS = 16
"""Rows up to which a CPU's threads share the rows of the matrix (measured: 1.2 to 2 times as fast)."""
LARGE = 1 << 17
"""Numbers of a matrix from which that is worth waiting for each other."""


PLAIN = (torch.float32, torch.float64)
"""Types that NumPy computes with as PyTorch does."""


def times(weight, x):
    """Return W x: [O] from arrays W [O I] and x [I].

    A row of W times x after the other reads W at 23 to 31 GB/s, the product of the matrix library that comes with
    PyTorch at 7 to 10 (one core, AMD EPYC).
    """
    return np.vecdot(weight, x)


def outside_autocast(function):
    """Let a function of tensors ignore `torch.autocast`: what the release computes in float32 stays so."""

    @wraps(function)
    def run(*given, **named):
        device = next(value for value in given if isinstance(value, torch.Tensor)).device.type
        if device == "meta" or not torch.is_autocast_enabled(device):
            return function(*given, **named)
        with torch.autocast(device, enabled=False):
            return function(*given, **named)

    return run


def suits_numpy(x, weight=None):
    """Whether NumPy may compute with x: one row if it meets a weight, on a CPU, no narrow type, autocast or gradients.

    Args:
        x: (…, n).
        weight: what it meets, (…, n) of the same type, or None.
    """
    meets = weight is None or (x.numel() == weight.shape[-1] and x.dtype == weight.dtype)
    plain = x.dtype in PLAIN and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return meets and plain and not torch.is_grad_enabled()


def product(x, weight):
    """Return x Wᵀ: (…, O) from x (…, I) and W [O I].

    For a few rows a CPU's matrix library uses one thread, and reading W is all the work. So W is cut into as many parts
    as there are threads, which makes it a batch. A single row without gradient is left to NumPy (`times`).
    """
    parts, (rows, columns) = torch.get_num_threads(), weight.shape
    if parts <= 2 and suits_numpy(x, weight):
        return torch.from_numpy(times(weight.detach().numpy(), x.numpy().reshape(-1))).view(*x.shape[:-1], rows)
    few = 0 < x.numel() <= FEW_ROWS * columns and rows * columns >= LARGE
    if not few or parts == 1 or rows % parts or weight.device.type != "cpu":
        return nn.functional.linear(x, weight)
    narrow = x.reshape(1, -1, columns).expand(parts, -1, -1)  # parts n I
    wide = torch.bmm(narrow, weight.view(parts, -1, columns).mT)  # parts n O/parts
    return wide.transpose(0, 1).reshape(*x.shape[:-1], rows)


def round_input(x, block=rules.BLOCK):
    """Return x as the kernels would multiply it: rounded to E4M3, one power of two for `block` numbers; type of x.

    Args:
        x: (…, n), n a multiple of block. The gradient passes unchanged.
        block: 32 in V4.1, 128 in V4.

    Raises:
        ValueError: the width does not fit, or a value is not finite.
    """

    def read_back(values):
        return quant.dequantize_fp8(*quant.quantize_fp8(values, block), block).to(values.dtype)

    return quant.straight_through(x, read_back)


def round_inputs(model):
    """Round the inputs of all matrices of a model that the release stores in FP8 or FP4, from now on.

    Args:
        model: module with released names; it is changed.

    Raises:
        ValueError: lists matrices whose input is no whole number of blocks.
    """
    shapes = {name: parameter.shape for name, parameter in model.state_dict().items()}
    rules.require_whole_blocks({name: shape for name, shape in shapes.items() if rules.QUANTISED.search(name)})
    for name, module in model.named_modules():
        first = next(iter(module.released())) if isinstance(module, Stacked) else "weight"
        if rules.QUANTISED.search(f"{name}.{first}"):
            module.rounds_input = True


def at_least_float32(where):
    """Return device and dtype of a parameter that the release keeps in float32, in a narrow model too."""
    return {**where, "dtype": torch.promote_types(where["dtype"], torch.float32)}


class Matrix(nn.Module):
    """x Wᵀ: (…, O) from (…, I).

    Args:
        rows, columns: O and I.
        where: device and dtype.

    Attributes:
        rounds_input: whether x is rounded first (`round_inputs`).
    """

    rounds_input = False

    def __init__(self, rows, columns, where):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns, **where))
        nn.init.normal_(self.weight, std=columns**-0.5)

    def forward(self, x):
        """Return (…, O)."""
        return product(round_input(x) if self.rounds_input else x, self.weight)


class Head(Matrix):
    """Logits: float32 or better whatever the weight's type, as the release computes them (nearby ones must not tie).

    Args:
        rows, columns: V and C.
        where: device and dtype of the model; the weight is kept in float32 or better, so that no step converts it.
    """

    def __init__(self, rows, columns, where):
        super().__init__(rows, columns, at_least_float32(where))

    @outside_autocast
    def forward(self, x):
        """Return (…, V)."""
        kind = torch.promote_types(self.weight.dtype, torch.float32)
        return product(x.to(kind), self.weight.to(kind))


class Stacked(nn.Module):
    """A module whose parameters hold several released matrices each.

    Subclasses have a method `released()` that says which: {released name: (name of the parameter, index into it)}.

    Attributes:
        rounds_input: whether what the matrices multiply is rounded first (`round_inputs`).
    """

    rounds_input = False

    def stack(self, name, shape, where):
        """Make a random parameter (…, O, I)."""
        stacked = nn.Parameter(torch.empty(shape, **where))
        nn.init.normal_(stacked, std=shape[-1] ** -0.5)
        setattr(self, name, stacked)

    def _make_anew(self, given):
        """Let parameters have the type and device of what is given, {name: tensor}; they keep the values they have."""
        for name, tensor in given.items():
            old = getattr(self, name)
            new = torch.zeros(old.shape, dtype=tensor.dtype, device=tensor.device)
            if not old.is_meta:
                new.copy_(old.detach())
            setattr(self, name, nn.Parameter(new, requires_grad=old.requires_grad))

    def _input(self, x):
        return round_input(x) if self.rounds_input else x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, (parameter, index) in self.released().items():
            stacked = getattr(self, parameter)
            destination[prefix + name] = (stacked if keep_vars else stacked.detach())[index]

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        known = {prefix + name: place for name, place in self.released().items()}
        if metadata.get("assign_to_params_buffers"):
            self._make_anew({name: state[key] for key, (name, _) in known.items() if key in state})
        for key, (parameter, index) in known.items():
            if key not in state:
                missing.append(key)
                continue
            with torch.no_grad():
                matrix = getattr(self, parameter)[index]
                if matrix.is_meta and not state[key].is_meta:
                    errors.append(f"{key} has no memory here (device meta); load with assign=True")
                elif state[key].shape == matrix.shape:
                    matrix.copy_(state[key])
                else:
                    errors.append(f"{key} must have shape {tuple(matrix.shape)}; got {tuple(state[key].shape)}")
        unexpected.extend(key for key in state if key.startswith(prefix) and key not in known)
