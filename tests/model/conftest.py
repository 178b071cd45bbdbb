"""These tests need PyTorch, run it on one thread, and draw the same examples on every run."""

import pytest
from hypothesis import settings

try:
    import torch
except ImportError:
    raise pytest.UsageError("tests/model needs PyTorch; `make test` installs it, or: pip install torch") from None

torch.set_num_threads(1)
settings.register_profile("course", deadline=None, derandomize=True, database=None)
settings.load_profile("course")
