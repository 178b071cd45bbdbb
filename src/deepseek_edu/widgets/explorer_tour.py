"""Four steps over the explorer's map: process the input, read earlier context, retrieve memory, produce output."""

from collections.abc import Callable

from deepseek_edu import accounting
from deepseek_edu.drawing.numbers import grouped, percent, show

from .explorer_facts import amount, config_of, key_of, spans
from .explorer_layout import plans_of
from .explorer_map import Marks, map_picture
from .parts import Metric, Metrics, View

TOUR = ("1: process the input", "2: read earlier context", "3: retrieve extra memory", "4: produce output")
_PROMPT, _FAR = 4096, 1_048_576


def tour_view(step: int) -> View:
    """The view of a step, 1 to 4."""
    config = config_of("v41")
    marks, phase, metrics, text = _STEPS[step - 1](config)
    title = TOUR[step - 1].partition(": ")[2].capitalize()
    return View(
        (
            map_picture(
                config,
                marks,
                phase,
                "",
                f"What takes part in step {step} is marked.",
                {"step": step, "picked": list(marks.picked)},
            ),
            Metrics(metrics, title),
        ),
        f"Step {step} of 4, {title.lower()}: {text}",
    )


Told = tuple[Marks, str, tuple[Metric, ...], str]


def _input(config) -> Told:
    encoder = tuple(key_of(config, p) for p in plans_of(config) if p.side == "encoder")
    plain, short = accounting.work.ced_block_tokens(config, _PROMPT).values()
    active = sum(accounting.activated_parameters(config, "prefill").values())
    start, window = config.decoder_start, config.window_size
    text = (
        f"A prompt goes through the embedding and the {start} encoder layers. From their output layer {start} "
        "makes the global "
        f"entries of every token; the rest of the decoder runs only for the last {window} tokens."
    )
    metrics = (
        Metric(
            f"Layers × tokens, prompt of {grouped(_PROMPT)}",
            short,
            grouped(short),
            note=f"{grouped(plain)} without skipping",
        ),
        Metric("Share", short / plain, percent(short / plain, digits=3), note="a proxy, not time"),
        Metric(
            "Parameters a prompt token meets",
            active,
            amount(active, 3),
            note="a decoded token meets about twice as many",
        ),
    )
    return Marks(picked=("embedding", *encoder)), "prefill", metrics, text


def _context(config) -> Told:
    plans = plans_of(config)
    owners, choosers = config.kv_source_layers, config.index_source_layers
    reading = tuple(p.index for p in plans if p.owner is not None)
    last = plans[config.decoder_start]
    read = accounting.work.entries_read(config, last, _FAR)
    text = (
        f"Every layer reads its own window of {config.window_size} tokens. Layers {spans(reading)} also read a "
        "global memory, "
        f"made by only {len(owners)} layers ({spans(owners)}); the whole decoder reads that of layer "
        f"{config.decoder_start}. "
        f"{len(choosers)} layers choose which {config.index_topk} entries are read, the others reuse a choice."
    )
    grows = accounting.global_bytes_per_token(config)
    metrics = (
        Metric(
            "Global KV",
            grows,
            show(grows),
            "bytes per token",
            note=f"{len(owners)} of {config.n_layers} layers keep it",
        ),
        Metric(
            f"Entries read at {grouped(_FAR)}",
            read,
            grouped(read),
            note=f"{config.window_size} of the window, {config.index_topk} chosen",
        ),
    )
    return Marks(readers=reading, choosers=choosers, memories=owners), "decode", metrics, text


def _memory(config) -> Told:
    layers = config.engram_layer_ids
    tables = accounting.engram_table_parameters(config)
    rows = (config.engram_max_ngram_size - 1) * config.engram_n_heads
    text = (
        f"Layers {spans(layers)} begin with an Engram: {rows} rows of a large table, addressed by hashes of the "
        "last 2, 3 and 4 "
        "token ids, are added to the streams through a gate. The tables are parameters, but a token touches only "
        "these rows."
    )
    metrics = (
        Metric("Numbers in the tables", tables, amount(tables)),
        Metric(
            "Rows of the tables",
            sum(config.engram_num_embeddings),
            amount(sum(config.engram_num_embeddings)),
            note=f"of {config.engram_head_dim} numbers",
        ),
        Metric("Rows a token reads", rows * len(layers), note=f"{rows} in each of {len(layers)} layers"),
    )
    return Marks(picked=tuple(f"layer-{layer}" for layer in layers)), "decode", metrics, text


def _output(config) -> Told:
    active = sum(accounting.activated_parameters(config, "decode").values())
    targets = config.dspark_target_layer_ids
    draft = accounting.total_parameters(config, "draft")
    text = (
        f"A new token runs through all {config.n_layers} layers; the head gives {grouped(config.vocab_size)} "
        "logits. From the "
        f"streams entering layers {spans(targets)} the draft stages propose {config.dspark_block_size} tokens, "
        "which the model then "
        "verifies together."
    )
    metrics = (
        Metric(
            "Parameters a decoded token meets",
            active,
            amount(active, 3),
            note="Engram projections and embedding not counted",
        ),
        Metric("Parameters of the draft stages", draft, amount(draft, 3)),
        Metric("Tokens drafted at once", config.dspark_block_size),
    )
    picked = ("head", *(f"draft-{stage}" for stage in range(config.n_mtp_layers)))
    return (
        Marks(picked=picked, sources=tuple((f"layer-{layer}", "k-hidden") for layer in targets)),
        "decode",
        metrics,
        text,
    )


_STEPS: tuple[Callable[..., Told], ...] = (_input, _context, _memory, _output)
__all__ = ["TOUR", "tour_view"]
