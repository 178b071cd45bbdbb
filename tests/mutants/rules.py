"""Which line of the specification's checklist, and which mistake that shipped elsewhere, a rule belongs to.

Numbers `18.1` … are the lines of section 18 of the specification in their order; `29a` … the items of behaviours 29 to
34, in the order in which tests/behaviours.toml and the collection behind it name them. Each has mutants in NumPy and in
PyTorch, which share the words of their rules.
"""

CHECKLIST = {
    "18.1": ("one-hot A at layer 0", ("the first A is one-hot on stream 0",)),
    "18.2": ("shift per sub-block", ("A is shifted by one sub-block",)),
    "18.3": ("sum over first index of S", ("streams are mixed over the first index of S",)),
    "18.4": ("columns last", ("Sinkhorn ends with columns",)),
    "18.5": (
        "eps inside both divisions",
        ("eps is inside the division by row sums", "eps is inside the division by column sums"),
    ),
    "18.6": (
        "YaRN theta also for window and queries in compressed layers",
        (
            "window entries of compressed layers turn like everything else there",
            "queries of compressed layers turn like everything else there",
            "layers with ratio 1 use YaRN too",
        ),
    ),
    "18.7": (
        "latents rotated at j·r",
        ("an entry turns at its group's first token", "an entry turns at the position of a token"),
    ),
    "18.8": ("index key from un-rotated latent", ("the index key comes from the latent before it turns",)),
    "18.9": (
        "visible = (t+1)//r",
        ("an entry is visible when its group is complete", "an entry is visible to the token that completes it"),
    ),
    "18.10": (
        "sink unscaled, denominator only",
        ("the sink is not scaled", "the sink takes weight and gives no value"),
    ),
    "18.11": (
        "inverse RoPE before grouping",
        ("outputs are turned back before they are grouped", "outputs are turned back"),
    ),
    "18.12": (
        "bias only for selection",
        ("the correction bias only chooses", "the correction bias chooses"),
    ),
    "18.13": ("weights sum 1.5", ("the weights sum to the route scale",)),
    "18.14": (
        "gate clamp only above",
        ("the gate is clamped from above only", "the other branch is clamped on both sides"),
    ),
    "18.15": (
        "Engram blocking cumulative, image τ₀ = pad, gate 0",
        (
            "a blocked position hides everything before it",
            "an image position itself reads padding",
            "nothing is added at image positions",
        ),
    ),
    "18.16": (
        "candidate newest-block pin, layer 20 not restricted",
        ("the newest block is always a candidate", "the source of the pool chooses from everything"),
    ),
    "18.17": ("pool shared by 24/28/32/36", ("reindexing layers choose inside the pool",)),
    "18.18": ("list reuse by following layers", ("reusing layers take the choice made last",)),
    "18.19": ("owner's own index keys", ("an indexer reads its owner's own index keys",)),
    "18.20": (
        "DSpark reads inputs of 37–39 after Engram, context via wkv(main_x) without attn_norm",
        (
            "the drafter reads the inputs of its target layers",
            "context entries come straight from the projected streams",
        ),
    ),
    "18.21": ("block bidirectional", ("every row of a block sees all rows",)),
    "18.22": ("Markov uses previous draft token", ("the bias of a row comes from the draft to its left",)),
    "18.23": ("confidence uses un-normed h", ("confidence reads the streams before the final norm",)),
    "18.24": (
        "rollback on rejection",
        (
            "rejected positions are taken back",
            "entries of rejected positions are taken back",
            "the half-filled group of before comes back",
            "the ids of rejected positions are forgotten",
        ),
    ),
}
"""Number -> (the line, the rules that mutants break)."""

BEHAVIOURS = {
    "29a": ("keys dropped for multi-token queries", ("several new tokens see the window before them",)),
    "29b": ("off by one (128/129)", ("a query sees W positions, its own included",)),
    "29c": ("wrong when length just reaches the window", ("the ring keeps what the next query reads",)),
    "29d": (
        "ring loses causality on prompts longer than the buffer",
        ("a prompt longer than the ring leaves its end in it", "a new token does not see those after it"),
    ),
    "29e": (
        "a restored window continues differently",
        ("windows begin where the replay begins", "speculative positions have slots of their own"),
    ),
    "30a": ("Top-k of one query used for another", ("each query has its own choice",)),
    "30b": (
        "compressed entry visible too early",
        ("an entry is visible when its group is complete", "only visible entries are chosen"),
    ),
    "30c": ("index key without rotation", ("index keys turn",)),
    "30d": ("stale index keys in decode", ("an indexer reads its owner's own index keys",)),
    "31a": ("correction bias leaking into weights", ("the correction bias only chooses",)),
    "31b": ("bias in half precision", ("the bias is added in full precision",)),
    "31c": ("missing normalisation", ("the weights sum to the route scale",)),
    "31d": (
        "clamp on the wrong side",
        ("the gate is clamped from above only", "the other branch is clamped on both sides"),
    ),
    "32a": ("FP4 ties rounded away from zero", ("ties go to the even code",)),
    "32b": ("scale overflow to NaN", ("the E4M3 scale saturates at 448",)),
    "32c": ("double rounding", ("a number is rounded once",)),
    "32d": ("packing order", ("the even channel lies in the low nibble", "the low nibble is the even channel")),
    "33a": ("acceptance by equality", ("a draft stands with probability P/Q",)),
    "33b": ("resampling from p instead of the residual", ("after a rejection the residual is drawn from",)),
    "33c": (
        "the q reported is not the q sampled",
        ("the distribution reported is the one drafts are drawn from",),
    ),
    "33d": ("the first draft token accepted unverified", ("the first draft is verified too",)),
    "33e": (
        "state not rolled back",
        ("rejected positions are taken back", "entries of rejected positions are taken back"),
    ),
    "34a": ("an extra per-head query norm", ("V4.1 has no norm per head of the query",)),
    "34b": ("Python's salted hash()", ("multipliers are the same in every process",)),
    "34c": ("Sinkhorn ending on the wrong side", ("Sinkhorn ends with columns",)),
}
"""Number -> (the mistake, the rules that mutants break)."""

WANTED = {**CHECKLIST, **BEHAVIOURS}


def numbers_of(rule):
    """Return the numbers a rule belongs to, in order; none for rules beyond the lists."""
    return [number for number, (_, rules) in WANTED.items() if rule in rules]


def uncovered(mutants):
    """Return the numbers no mutant of a group belongs to, and the rules of the lists that none of them breaks."""
    broken = {mutant.rule for mutant in mutants}
    numbers = [number for number, (_, rules) in WANTED.items() if not broken.intersection(rules)]
    rules = sorted({rule for _, rules in WANTED.values() for rule in rules} - broken)
    return numbers, rules
