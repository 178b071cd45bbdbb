"""Matrices as modules: parameters without bias, random at first, so that a model can be trained.

A module may keep several released matrices in one parameter (`Stacked`): one product instead of many. In a state dict
every matrix has its released name and is a view.

Source: released checkpoint, names `….weight`.
"""

import numpy as np
import torch
from torch import nn

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


def is_one_row(x, width):
    """Whether x is one row of `width` numbers that NumPy may compute with: on a CPU, no narrow type, no gradients."""
    return x.numel() == width and not torch.is_grad_enabled() and x.dtype in PLAIN and x.device.type == "cpu"


def product(x, weight):
    """Return x Wᵀ: (…, O) from x (…, I) and W [O I].

    For a few rows a CPU's matrix library uses one thread, and reading W is all the work. So W is cut into as many parts
    as there are threads, which makes it a batch. A single row without gradient is left to NumPy (`times`).
    """
    parts, (rows, columns) = torch.get_num_threads(), weight.shape
    if parts <= 2 and is_one_row(x, columns):
        return torch.from_numpy(times(weight.detach().numpy(), x.numpy().reshape(-1))).view(*x.shape[:-1], rows)
    few = 0 < x.numel() <= FEW_ROWS * columns and rows * columns >= LARGE
    if not few or parts == 1 or rows % parts or weight.device.type != "cpu":
        return nn.functional.linear(x, weight)
    narrow = x.reshape(1, -1, columns).expand(parts, -1, -1)  # parts n I
    wide = torch.bmm(narrow, weight.view(parts, -1, columns).mT)  # parts n O/parts
    return wide.transpose(0, 1).reshape(*x.shape[:-1], rows)


class Matrix(nn.Module):
    """x Wᵀ: (…, O) from (…, I).

    Args:
        rows, columns: O and I.
        where: device and dtype.
    """

    def __init__(self, rows, columns, where):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns, **where))
        nn.init.normal_(self.weight, std=columns**-0.5)

    def forward(self, x):
        """Return (…, O)."""
        return product(x, self.weight)


class Stacked(nn.Module):
    """A module whose parameters hold several released matrices each.

    Subclasses have a method `released()` that says which: {released name: (name of the parameter, index into it)}.
    """

    def stack(self, name, shape, where):
        """Make a random parameter (…, O, I)."""
        stacked = nn.Parameter(torch.empty(shape, **where))
        nn.init.normal_(stacked, std=shape[-1] ** -0.5)
        setattr(self, name, stacked)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, (parameter, index) in self.released().items():
            stacked = getattr(self, parameter)
            destination[prefix + name] = (stacked if keep_vars else stacked.detach())[index]

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        known = {prefix + name: place for name, place in self.released().items()}
        for key, (parameter, index) in known.items():
            if key not in state:
                missing.append(key)
                continue
            with torch.no_grad():
                matrix = getattr(self, parameter)[index]
                if state[key].shape == matrix.shape:
                    matrix.copy_(state[key])
                else:
                    errors.append(f"{key} must have shape {tuple(matrix.shape)}; got {tuple(state[key].shape)}")
        unexpected.extend(key for key in state if key.startswith(prefix) and key not in known)
