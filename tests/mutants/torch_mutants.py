"""Wrong variants of the PyTorch model; where a rule is that of the NumPy model, it has the same words."""

from tests.mutants import (
    torch_attention,
    torch_caches,
    torch_entries,
    torch_experts,
    torch_generation,
    torch_one_token,
    torch_steps,
    torch_storage,
    torch_streams,
    torch_threads,
    torch_training,
    torch_v4,
    torch_v4_layers,
    torch_v4_steps,
)

MUTANTS = (
    *torch_streams.MUTANTS,
    *torch_attention.MUTANTS,
    *torch_entries.MUTANTS,
    *torch_experts.MUTANTS,
    *torch_generation.MUTANTS,
    *torch_one_token.MUTANTS,
    *torch_steps.MUTANTS,
    *torch_storage.MUTANTS,
    *torch_caches.MUTANTS,
    *torch_training.MUTANTS,
    *torch_v4.MUTANTS,
    *torch_v4_layers.MUTANTS,
    *torch_v4_steps.MUTANTS,
    *torch_threads.MUTANTS,
)
