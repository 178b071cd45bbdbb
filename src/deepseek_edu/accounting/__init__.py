"""What a model costs, from its configuration alone: parameters, cache bytes, arithmetic. Standard library only.

    model_size.py   how many there are, part by part, and how many one token meets in decode and in prefill
    caches.py       bytes a sequence keeps, by model generation
    work.py         arithmetic of one decoded token, traffic of the hyper-connections, entries that a query reads
    choices.py      what compressing, sharing, selecting and fewer bits save, in a toy and on the way to the real cache

Everything is a closed form: no model is built and nothing is measured. A count is no speed: how fast the same work runs
is decided by kernels, batches and memory.

>>> from deepseek_edu.config import ModelConfig
>>> flash = ModelConfig.v41_flash()
>>> round(backbone_parameters(flash) / 1e9, 2), global_bytes_per_token(flash)
(551.57, 890.0)
"""

from deepseek_edu.accounting.caches import (
    GENERATIONS,
    entry_bytes,
    generation_bytes,
    global_bytes,
    global_bytes_by_layer,
    global_bytes_per_token,
    grouped_query_bytes,
    latent_bytes,
    sequence_bytes,
    turn_bytes,
    window_bytes,
)
from deepseek_edu.accounting.choices import (
    Toy,
    entries_stored,
    owner_of,
    read_bytes,
    released_steps,
    stored_bytes,
    vector_bytes,
)
from deepseek_edu.accounting.model_size import (
    activated_parameters,
    backbone_parameters,
    component_of,
    engram_table_parameters,
    layer_parameters,
    parameters,
    total_parameters,
)
from deepseek_edu.accounting.work import (
    PRECISION_WEIGHTS,
    Work,
    ced_block_tokens,
    decode_flops,
    decode_work,
    entries_read,
    entries_scored,
    hyper_connection_traffic,
    layer_work,
)

__all__ = [
    "GENERATIONS",
    "PRECISION_WEIGHTS",
    "Toy",
    "Work",
    "activated_parameters",
    "backbone_parameters",
    "ced_block_tokens",
    "component_of",
    "decode_flops",
    "decode_work",
    "engram_table_parameters",
    "entries_read",
    "entries_scored",
    "entries_stored",
    "entry_bytes",
    "generation_bytes",
    "global_bytes",
    "global_bytes_by_layer",
    "global_bytes_per_token",
    "grouped_query_bytes",
    "hyper_connection_traffic",
    "latent_bytes",
    "layer_parameters",
    "layer_work",
    "owner_of",
    "parameters",
    "read_bytes",
    "released_steps",
    "sequence_bytes",
    "stored_bytes",
    "total_parameters",
    "turn_bytes",
    "vector_bytes",
    "window_bytes",
]
