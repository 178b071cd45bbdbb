"""Views of the released models for the `accounting` widget: cache by generation, its path, prefill, decode."""

from deepseek_edu.accounting import caches, choices, work
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import fixed, grouped, percent, show

from . import accounting_drawing as drawing
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table, View

MODELS = {"v41": ModelConfig.v41_flash, "v4": ModelConfig.v4_flash_0731}
EXPONENTS = range(5, 21)
REFERENCE = 4096  # tokens that the growth of the decode arithmetic is counted from


@remembered(2)
def config_of(model: str) -> ModelConfig:
    return MODELS[model]()


def binary(count: float, digits: int = 4) -> str:
    """Bytes for readers: B, KiB, MiB, GiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{show(count / size, digits)} {unit}"
    return f"{show(float(count))} B"


def memory(tokens: int) -> View:
    """Bytes per token of four models, and what a context of this length takes."""
    per_token = {name.removeprefix("DeepSeek-"): size for name, size in caches.generation_bytes().items()}
    flash, v4 = config_of("v41"), config_of("v4")
    windows = caches.window_bytes(flash)["backbone"]
    held = {name: size * tokens for name, size in per_token.items()}
    held["V4-Flash"], held["V4.1-Flash"] = caches.global_bytes(v4, tokens), caches.global_bytes(flash, tokens)
    names = list(per_token)
    last = per_token[names[-1]]
    sums = caches.sequence_bytes(flash, tokens)
    metrics = Metrics(
        (
            Metric("V4.1-Flash, per token", last, show(last), "bytes", note="global KV"),
            Metric("V1 against it", per_token["V1"] / last, f"× {per_token['V1'] / last:.0f}"),
            Metric("V4-Flash against it", per_token["V4-Flash"] / last, f"× {per_token['V4-Flash'] / last:.2f}"),
            Metric("Global KV now", held["V4.1-Flash"], binary(held["V4.1-Flash"]), role="result", note="V4.1-Flash"),
        ),
        "Cache",
    )
    ahead = held["V4.1-Flash"] > windows
    prose = Prose(
        f"After {grouped(tokens)} tokens the global KV of V4.1-Flash takes {binary(held['V4.1-Flash'])}, "
        + ("more" if ahead else "less")
        + f" than the windows of all layers, {binary(windows)}, which have one size at every length. These are bytes. "
        "How fast the next token comes depends on how many of them are read, and on everything else that a step does."
    )
    table = Table(
        f"After {grouped(tokens)} tokens",
        ("What", "Bytes"),
        (
            *((f"{name}, grows with the context", held[name]) for name in names),
            ("of V4.1-Flash: entries", sums["entries"]),
            ("of V4.1-Flash: index keys", sums["index keys"]),
            ("V4.1-Flash, windows", sums["windows"]),
            ("V4.1-Flash, windows of the draft stages", sums["draft windows"]),
        ),
        folded=True,
    )
    table = Table(
        table.caption, table.columns, table.rows, tuple(("", grouped(row[1])) for row in table.rows), folded=True
    )
    summary = (
        f"Cache per token: V1 {grouped(per_token['V1'])}, V3.2 {grouped(per_token['V3.2'])}, V4-Flash "
        f"{grouped(per_token['V4-Flash'], 2)}, V4.1-Flash {show(last)} bytes. After {grouped(tokens)} tokens "
        f"V4.1-Flash holds {binary(held['V4.1-Flash'])} of global KV and {binary(windows)} of windows."
    )
    pictures = (drawing.squares_picture(per_token), drawing.context_picture(held, windows, tokens, per_token, binary))
    return View((*pictures, metrics, prose, table), summary)


def path(tokens: int) -> View:
    """The way from a latent in every layer to 890 bytes."""
    flash = config_of("v41")
    steps = choices.released_steps(flash)
    owners = {
        layer: (caches.entry_bytes(flash)["main"] / flash.compress_ratios[layer], size)
        for layer, size in caches.global_bytes_by_layer(flash).items()
    }
    end = steps["index keys"]
    held = caches.global_bytes(flash, tokens)
    readers = sum(ratio > 0 for ratio in flash.compress_ratios[: flash.n_layers])
    saved = {
        "compress": steps["a latent per layer"] / steps["compress"],
        "share": steps["compress"] / steps["share"],
        "four bits": steps["share"] / steps["four bits"],
    }
    plan = flash.schedule()[flash.kv_source_layers[-1]]
    read = work.entries_read(flash, plan, tokens) - min(tokens, flash.window_size)
    metrics = Metrics(
        (
            Metric("Compress", saved["compress"], f"÷ {show(saved['compress'], 3)}", note="ratio 2 in the encoder"),
            Metric(
                "Share",
                saved["share"],
                f"÷ {show(saved['share'], 3)}",
                note=f"{len(owners)} owners for {readers} layers",
            ),
            Metric("Four bits", saved["four bits"], f"÷ {show(saved['four bits'], 3)}", note="scales included"),
            Metric("Read per layer", read, grouped(read), f"of {grouped(tokens // plan.ratio)}", note="decoder layers"),
        ),
        "The path",
    )
    prose = Prose(
        f"Selection is not in the list: a decoder layer reads {grouped(read)} of {grouped(tokens // plan.ratio)} "
        "entries, and all of them stay stored. It even adds to the cache, because every entry that may be selected has "
        f"an index key, {caches.entry_bytes(flash)['index']} bytes each. The first line is a starting point to count "
        "from, not a model that existed; in another order the steps would divide by other numbers."
    )
    table = Table(
        "The owners",
        ("Layer", "Positions per entry", "Entries, bytes per token", "Index keys, bytes per token"),
        tuple((layer, flash.compress_ratios[layer], main, size - main) for layer, (main, size) in owners.items()),
        folded=True,
    )
    summary = (
        f"A BF16 latent in each of {readers} layers would take {grouped(steps['a latent per layer'])} bytes per token; "
        f"compressing leaves {grouped(steps['compress'])}, sharing {grouped(steps['share'])}, four bits "
        f"{grouped(steps['four bits'])}. With index keys it is {show(end)}, {binary(held)} for "
        f"{grouped(tokens)} tokens."
    )
    return View((drawing.path_picture(steps, owners, readers), metrics, prose, table), summary)


def prefill(tokens: int) -> View:
    """Pairs of a layer and a token that a prefill evaluates, with all layers and with the decoder skipped."""
    flash = config_of("v41")
    counts = work.ced_block_tokens(flash, tokens)
    every, skipped = counts["all layers"], counts["encoder–decoder"]
    share = skipped / every
    run, encoder = min(tokens, flash.window_size), flash.decoder_start
    shares = {2**k: _share(flash, 2**k) for k in EXPONENTS}
    metrics = Metrics(
        (
            Metric("Every layer on every token", every, grouped(every), note=f"{flash.n_layers} · {grouped(tokens)}"),
            Metric(
                "Decoder on the last window only",
                skipped,
                grouped(skipped),
                note=f"{encoder} · {grouped(tokens)} + {flash.n_layers - encoder} · {run}",
                role="result",
            ),
            Metric("Share", share, percent(share, 1), note="of the block evaluations"),
        ),
        "Prefill",
    )
    limits = Prose(
        "A proxy. It counts how often a layer meets a token, and no operations: layers cost differently, and attention "
        f"costs more with the context. It leaves out that layer {encoder} projects global entries for every token, "
        "prefixes found in the cache, images, and kernels. It is neither FLOPs nor latency.",
        "warn",
    )
    summary = (
        f"For a prompt of {grouped(tokens)} tokens all layers would make {grouped(every)} block evaluations; with the "
        f"decoder on the last {run} tokens only it is {grouped(skipped)}, {percent(share, 1)}."
    )
    return View((drawing.prefill_picture(flash, tokens, run, counts, shares), metrics, limits), summary)


def _share(config: ModelConfig, tokens: int) -> float:
    counts = work.ced_block_tokens(config, tokens)
    return counts["encoder–decoder"] / counts["all layers"]


@remembered(2)
def decode_table(model: str) -> dict[int, dict[str, float]]:
    """{context: {component: operations in BF16 equivalents}} for all contexts of the slider."""
    return {2**k: work.decode_flops(config_of(model), 2**k) for k in EXPONENTS}


def decode(tokens: int, model: str) -> View:
    """Arithmetic of one decoded token by context, and which part of it grows."""
    table = decode_table(model)
    config = config_of(model)
    now, start = table[tokens], table[REFERENCE]
    total, before = sum(now.values()), sum(start.values())
    grown = {name: now[name] - start[name] for name in now}
    reads = [work.entries_read(config, plan, tokens) for plan in config.schedule()[: config.n_layers]]
    scores = sum(work.entries_scored(config, plan, tokens) for plan in config.schedule()[: config.n_layers])
    name = {"v41": "V4.1-Flash", "v4": "V4-Flash"}[model]
    metrics = Metrics(
        (
            Metric("One token", total, _giga(total), "GFLOP", note="in BF16 equivalents", role="result"),
            Metric(
                f"Against {grouped(REFERENCE)}",
                total / before,
                f"× {total / before:.2f}",
                note=f"{_giga(before)} GFLOP there",
            ),
            Metric("Index scan", now["index scan"], _giga(now["index scan"]), "GFLOP", note=f"{grouped(scores)} keys"),
            Metric(
                "Attention over entries",
                now["attention core"],
                _giga(now["attention core"]),
                "GFLOP",
                note=f"{min(reads)} to {grouped(max(reads))} a layer",
            ),
        ),
        "Decode",
    )
    rows = tuple((part, now[part], grown[part]) for part in sorted(now, key=now.__getitem__, reverse=True))
    parts = Table(
        f"One token of {name} after {grouped(tokens)} tokens",
        ("Part", "GFLOP", f"more than at {grouped(REFERENCE)}"),
        rows,
        tuple(("", _giga(value), _giga(more)) for _, value, more in rows),
        folded=True,
    )
    summary = (
        f"One token of {name} with {grouped(tokens)} tokens of context takes {_giga(total)} GFLOP in BF16 equivalents, "
        f"{total / before:.2f} times that at {grouped(REFERENCE)}; {_giga(now['index scan'])} of them scan index keys."
    )
    return View((drawing.decode_picture(table, tokens, name), metrics, _growth(tokens, grown, model), parts), summary)


def _growth(tokens: int, grown: dict[str, float], model: str) -> Prose:
    """Where more context costs more."""
    more = sum(grown.values())
    limits = (
        " Operations in FP8 count half, in FP4 a quarter. Norms, softmax and the reading of memory, which decides the "
        "speed of a decode step, are not counted."
    )
    if tokens <= REFERENCE:
        return Prose(
            f"Up to {grouped(REFERENCE)} tokens the selection fills up; from there on each layer reads a fixed number "
            "of entries" + (" (in V4-Flash: only where it selects)." if model == "v4" else ".") + limits
        )
    scan, core = grown["index scan"] / more, grown["attention core"] / more
    words = f"{percent(scan)} of the growth is the scan of the index keys"
    if core > 0.005:
        words += (
            f", {percent(core)} attention over entries: the layers that pool 128 tokens into one entry read all of "
            "these, and those grow with the context"
        )
    else:
        words += ": every layer reads a fixed number of entries, but to choose them an owner scores all of its own"
    return Prose(words + "." + limits)


def _giga(operations: float) -> str:
    """Billions of operations, all with the same decimals, so that parts add up by eye."""
    return fixed(operations / 1e9, 3)
