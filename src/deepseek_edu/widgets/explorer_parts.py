"""The parts of the model that the explorer can find by name, for both generations."""

from .explorer_facts import Part, Place


def _backbone(plan):
    return plan.side != "draft"


def _report(section: str, module: str, function: str) -> Place:
    return Place(f"Report, section {section}", module, function)


_ATTENTION = ("backbone", ("attention",))
_SHARED = {
    "embedding": Part(
        "Embedding",
        "Each of {vocab_size} token ids has a row of {dim} numbers. The row is copied to {hc_mult} residual streams.",
        _report("2", "model", "Model"),
        counted=("backbone", ("embedding",)),
        boxes=("embedding",),
    ),
    "attention": Part(
        "Attention: query, heads, output",
        "A narrow vector of {q_lora_rank} numbers becomes {n_heads} queries of {head_dim}. All heads read the same "
        "entries, each entry is key and value, and every head has a learned sink. The output is rotated back and "
        "projected in {o_groups} groups.",
        _report("2.3", "attention", "sink_attention"),
        has=_backbone,
        counted=_ATTENTION,
        work=("attention projections", "attention core"),
    ),
    "window": Part(
        "Sliding window",
        "Every layer keeps its own entries of the last {window_size} tokens, in FP8. This room never grows.",
        _report("2.3", "window", "window_table"),
        has=lambda plan: True,
    ),
    "router": Part(
        "Router",
        "Scores all {n_routed_experts} experts and takes the best {n_activated_experts}. A correction bias takes "
        "part in "
        "the choice, never in the weights, which sum to {route_scale}.",
        _report("2.2", "moe", "route"),
        has=_backbone,
        counted=("backbone", ("router",)),
        work=("router",),
    ),
    "experts": Part(
        "Experts, routed and shared",
        "{n_activated_experts} of {n_routed_experts} routed experts and {n_shared_experts} shared one run for a token; "
        "each is a SwiGLU of {dim} to {moe_inter_dim} and back.",
        _report("2.2", "moe", "experts_output"),
        has=_backbone,
        counted=("backbone", ("routed experts", "shared experts")),
        work=("experts",),
    ),
    "head": Part(
        "Head",
        "The streams are collapsed to one vector, normalised, and multiplied with {vocab_size} rows: one logit for "
        "each "
        "token id.",
        _report("2", "model", "Model"),
        counted=("backbone", ("head",)),
        boxes=("head",),
        work=("head",),
    ),
}
_DRAFT = {
    "draft": Part(
        "DSpark draft stages",
        "Three small layers draft {dspark_block_size} tokens at once from streams of the last layers. The drafts "
        "are then "
        "verified by the model, so they change its speed, not its output distribution.",
        _report("2.4.3", "dspark", "draft"),
        has=lambda plan: plan.side == "draft",
        counted=("draft", ("attention", "routed experts", "shared experts", "router", "hyper-connections", "norms")),
    ),
    "markov": Part(
        "Markov head and confidence head",
        "In the last draft stage: a bigram bias of rank {dspark_markov_rank} from the token drafted before, and "
        "one number "
        "that says how likely the draft will be accepted.",
        _report("2.4.3", "dspark", "draft"),
        counted=("draft", ("Markov head", "confidence head")),
        boxes=("draft-2",),
    ),
}
V41_PARTS = {
    **_SHARED,
    "vision": Part(
        "Vision tower",
        "Image patches become vectors that take the place of embeddings. Image tokens have a router bias of their "
        "own and "
        "no Engram.",
        _report("2.1.1", "vision", "vision_tower"),
        counted=("vision", ("tower", "aligner", "delimiters")),
        boxes=("vision",),
    ),
    "mhc": Part(
        "Hyper-connections (mHC)",
        "Before attention and before the experts {hc_mult} streams are collapsed to one vector; after it they are "
        "mixed by "
        "a nearly doubly stochastic matrix. Each collapse uses the coefficients made one sub-block earlier.",
        _report("2.4.1", "mhc", "coefficients"),
        has=_backbone,
        counted=("backbone", ("hyper-connections",)),
        work=("hyper-connections",),
    ),
    "compressor": Part(
        "Compressor (global KV)",
        "Four layers make compressed entries of {head_dim} numbers that later layers read. All other layers own none.",
        _report("2.3", "compressor", "pool"),
        has=lambda plan: plan.mode == "full",
        counted=("backbone", ("compressor",)),
        work=("compressor",),
    ),
    "indexer": Part(
        "Indexer (Top-k choice)",
        "{index_n_heads} narrow heads score the index keys of entries; the best {index_topk} entries are read. "
        "Four layers "
        "make keys and choose, four more choose anew, all others reuse a choice.",
        _report("2.3.2", "indexer", "index_scores"),
        has=lambda plan: plan.mode in ("full", "reindex"),
        counted=("backbone", ("index queries", "index keys")),
        work=("index queries", "index keys", "index scan"),
    ),
    "pool": Part(
        "Candidate pool",
        "Layer {candidate_source_layer} keeps {candidate_topk_blocks} blocks of {candidate_block_size} entries for "
        "each "
        "query. The layers that choose above it look only there, so their scan stops growing.",
        _report("2.3.2", "indexer", "candidate_pool"),
        has=lambda plan: bool(plan.pool),
    ),
    "engram": Part(
        "Engram (n-gram memory)",
        "Rows of large tables, addressed by hashes of the last 2, 3 and 4 tokens, are added to the streams through "
        "a gate.",
        _report("2.4.2", "engram", "engram"),
        has=lambda plan: plan.engram is not None,
        counted=("engram", ("tables", "readers")),
        work=("engram readers",),
    ),
    **_DRAFT,
}
_V4 = "V4 report, section 2"
V4_PARTS = {
    **_SHARED,
    "mhc": Part(
        "Hyper-connections (mHC)",
        "{hc_mult} streams, as in V4.1, but each collapse uses coefficients made from the same streams: they are "
        "read twice.",
        Place(_V4, "v4_model", "block"),
        has=_backbone,
        counted=("backbone", ("hyper-connections",)),
        work=("hyper-connections",),
    ),
    "compressor": Part(
        "Compressors (global KV)",
        "Every layer but the first two makes its own entries: CSA one for 4 overlapping tokens, HCA one for 128.",
        Place(_V4, "v4_compressor", "compress"),
        has=lambda plan: plan.mode in ("csa", "hca"),
        counted=("backbone", ("compressor",)),
        work=("compressor",),
    ),
    "indexer": Part(
        "Indexer (Top-k choice)",
        "Each CSA layer scores its own index keys with {index_n_heads} heads and reads the best {index_topk} entries.",
        Place(_V4, "v4_attention", "choose"),
        has=lambda plan: plan.mode == "csa",
        counted=("backbone", ("index queries", "index keys")),
        work=("index queries", "index keys", "index scan"),
    ),
    "hash": Part(
        "Experts chosen by a table",
        "In the first {n_hash_layers} layers a table says which experts a token id gets; the router only weighs them.",
        Place(_V4, "v4_model", "hash_route"),
        has=lambda plan: plan.hash_routed,
        counted=("stored", ("expert tables",)),
    ),
    **_DRAFT,
}
PARTS = {"v41": V41_PARTS, "v4": V4_PARTS}
