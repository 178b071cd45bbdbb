"""Matrices as modules: one parameter `weight` [O I], no bias; random at first, so that a model can be trained.

Source: released checkpoint, names `….weight`.
"""

import torch
from torch import nn


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
        return nn.functional.linear(x, self.weight)
