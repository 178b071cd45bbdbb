"""Wrong variants of the PyTorch model; where a rule is that of the NumPy model, it has the same words."""

from tests.mutants import (
    torch_attention,
    torch_caches,
    torch_entries,
    torch_experts,
    torch_generation,
    torch_storage,
    torch_streams,
    torch_training,
)

MUTANTS = (
    *torch_streams.MUTANTS,
    *torch_attention.MUTANTS,
    *torch_entries.MUTANTS,
    *torch_experts.MUTANTS,
    *torch_generation.MUTANTS,
    *torch_storage.MUTANTS,
    *torch_caches.MUTANTS,
    *torch_training.MUTANTS,
)
