"""The stops of the `one-token` walk: what is shown at each, what happens, and what V4.1 does there instead."""

from dataclasses import dataclass

from deepseek_edu.drawing.numbers import grouped


@dataclass(frozen=True)
class Stop:
    """A stop.

    Attributes:
        name: title.
        rule: the rule, as short as a formula, or "".
        given: names of given numbers shown here.
        made: names of recomputed numbers shown here.
        text: what happens.
        v41: what is different in V4.1, or "".
        only: names of numbers that the walk prints and nothing that it prints is made of.
    """

    name: str
    rule: str
    given: tuple[str, ...]
    made: tuple[str, ...]
    text: str
    v41: str = ""
    only: tuple[str, ...] = ()


_FAR = "entries_scored_per_query_at_1048576"
BLOCKS = {
    "byte": 1,
    "mHC": 3,
    "attention": 2,
    "experts": 4,
    "CSA, HCA": 2,
    "router": 1,
    "reads": 1,
    "V4.1": 1,
}
"""What the stops belong to, in order: a name and how many of them."""

STOPS = (
    Stop(
        "The byte",
        "“deepseek” is eight bytes; we follow p",
        ("ids", "embedding_p"),
        (),
        "p stands at position 3. Its embedding is four numbers wide here.",
        f"The same, with {grouped(5120)} numbers instead of {grouped(4096)}.",
    ),
    Stop(
        "Streams",
        "X = w · eᵀ",
        ("embedding_p", "mhc.expand_weights"),
        ("mhc.X",),
        "The embedding becomes two residual streams, one row each.",
        "Streams begin as equal copies, in the released V4 as well. There are four of them.",
    ),
    Stop(
        "Mixing matrix",
        "rows ÷ their sums, then columns ÷ their sums, 20 times in turn",
        ("mhc.exp_B_raw",),
        ("mhc.iter1_row", "mhc.iter1_col", "mhc.B"),
        "What remains is nearly doubly stochastic: every row and every column sums to almost 1.",
        "The same twenty steps.",
    ),
    Stop(
        "Collapse",
        "H = A₁X₁ + A₂X₂",
        ("mhc.A",),
        ("mhc.X", "mhc.collapsed_H"),
        "This one vector is what attention reads, after its norm.",
        "A comes from the sub-block before, so the streams are read once instead of twice.",
    ),
    Stop(
        "Window attention",
        "weight = exp(score) ÷ (Σ exp(scores) + exp(sink))",
        ("swa.q_head1", "swa.k_head1", "swa.scores", "swa.sink_logit"),
        ("swa.q_rotated_last2", "swa.scale", "swa.scores", "swa.denominator", "swa.weights", "swa.sink_mass"),
        "The last two numbers of query and key turn by 3 radians before they meet. The sink takes its part of the "
        "weight and gives no value.",
        "Queries are no longer divided by their size head by head, and all 512 channels of an entry are stored in FP8.",
        ("swa.v_head1",),
    ),
    Stop(
        "Write back",
        "X′ⱼ = Cⱼ y + Σᵢ Bᵢⱼ Xᵢ",
        ("swa.F_attn", "mhc.C"),
        ("mhc.B", "swa.X_new"),
        "Every stream gets its share of the output, plus the mix of the old streams.",
        "The same rule.",
    ),
    Stop(
        "Experts by table",
        "first expert = id mod 4, second = the next one",
        ("ids", "hash_moe.gates"),
        ("hash_moe.primary", "hash_moe.second", "hash_moe.occupancy", "hash_moe.gates"),
        "In the first layers a table says which experts an id gets. The router’s scores only weigh them.",
        "No table: the router of every layer chooses.",
    ),
    Stop(
        "Inside an expert",
        "hidden = SiLU(gate) × up",
        ("hash_moe.gate", "hash_moe.up"),
        ("hash_moe.h", "hash_moe.silu", "hash_moe.hidden"),
        "The experts read h, the streams collapsed again. Gate and up are two projections of it.",
        "The same; the shared expert is clamped as well.",
    ),
    Stop(
        "Sum of the experts",
        "y = g₁ E₀(h) + g₂ E₁(h) + shared(h)",
        ("hash_moe.expert0", "hash_moe.expert1", "hash_moe.shared"),
        ("hash_moe.gates", "hash_moe.routed", "hash_moe.F_moe"),
        "The shared expert is added without a weight.",
        "6 of 384 experts instead of 6 of 256.",
    ),
    Stop(
        "End of layer 0",
        "X″ⱼ = Cⱼ y + Σᵢ Bᵢⱼ X′ᵢ",
        ("mhc.A", "mhc.C"),
        ("hash_moe.F_moe", "hash_moe.X_after_layer0", "csa.H_p"),
        "Collapsed again, the streams are what layer 1 reads.",
    ),
    Stop(
        "What p may read",
        "an entry is visible when its last token has come",
        (),
        ("csa.visible_entries_for_p", "hca.visible_entries_for_p"),
        "A compressed entry mixes several tokens, so its index score counts for nothing until all of them are there.",
        "Groups do not overlap, and only four layers make entries; no layer has HCA.",
        ("csa.entries", "csa.weights_a", "csa.weight_b"),
    ),
    Stop(
        "Core attention",
        "weight = exp(score) ÷ (Σ exp(scores) + exp(sink))",
        ("csa.core_scores", "csa.core_sink_logit"),
        ("csa.core_weights", "csa.core_sink_mass"),
        "Query p attends to the chosen entry and its window together.",
        "The same; most layers reuse entries and choice of an earlier layer.",
        ("csa.context", "csa.F_csa"),
    ),
    Stop(
        "Router",
        "score = √softplus(logit); choose by score + bias, weigh by score",
        ("router.logits", "router.bias"),
        ("router.softplus", "router.sqrt", "router.biased", "router.selected", "router.gates"),
        "The bias takes part in the choice of two experts, not in their weights.",
        "The same rule, with a second set of biases for tokens of images.",
    ),
    Stop(
        "At a million tokens",
        "entries that one query reads",
        (),
        (f"{_FAR}.swa", f"{_FAR}.csa", f"{_FAR}.hca", f"{_FAR}.dense"),
        f"A layer with a window only, CSA and HCA at {grouped(1048576)} tokens, and dense attention for comparison.",
        "640 in every layer that reads compressed entries, 128 in the two others.",
    ),
    Stop(
        "V4 and V4.1",
        "",
        (),
        (),
        "The same token meets another machine: fewer layers that remember, more experts, a table of n-grams.",
    ),
)
GIVEN_LABELS = {
    "swa.scores": "Score of the token before p",
    "hash_moe.gates": "Router scores of its two experts",
}
LABELS = {
    "ids": "Token ids",
    "embedding_p": "Embedding e",
    "mhc.expand_weights": "Weights w",
    "mhc.X": "Streams X",
    "mhc.A": "A",
    "mhc.C": "C",
    "mhc.exp_B_raw": "Raw matrix",
    "mhc.iter1_row": "After the first row step",
    "mhc.iter1_col": "After the first column step",
    "mhc.B": "Mixing matrix B",
    "mhc.collapsed_H": "Collapsed H",
    "swa.q_head1": "Query, head 1",
    "swa.k_head1": "Key of p",
    "swa.scores": "Scores: before p, and p",
    "swa.sink_logit": "Sink",
    "swa.q_rotated_last2": "Rotated half of the query",
    "swa.scale": "Scale",
    "swa.denominator": "Denominator",
    "swa.weights": "Weights",
    "swa.sink_mass": "Weight of the sink",
    "swa.F_attn": "Output y",
    "swa.X_new": "Streams X′",
    "hash_moe.primary": "First expert of each token",
    "hash_moe.second": "Second expert of each token",
    "hash_moe.occupancy": "Tokens of each expert",
    "hash_moe.gates": "Weights of its two experts",
    "hash_moe.h": "Input h",
    "hash_moe.gate": "Gate",
    "hash_moe.up": "Up",
    "hash_moe.silu": "SiLU of the gate",
    "hash_moe.hidden": "Hidden",
    "hash_moe.expert0": "Output of expert 0",
    "hash_moe.expert1": "Output of expert 1",
    "hash_moe.shared": "Output of the shared expert",
    "hash_moe.routed": "Routed",
    "hash_moe.F_moe": "Output of the experts",
    "hash_moe.X_after_layer0": "Streams after layer 0",
    "csa.H_p": "Collapsed for layer 1",
    "csa.visible_entries_for_p": "CSA: visible",
    "hca.visible_entries_for_p": "HCA: visible",
    "csa.core_scores": "Scores: entry 0, before p, p",
    "csa.core_sink_logit": "Sink",
    "csa.core_weights": "Weights",
    "csa.core_sink_mass": "Weight of the sink",
    "swa.v_head1": "Value of p, only printed",
    "csa.entries": "Entries of the CSA layer, only printed",
    "csa.weights_a": "Weights of its own group",
    "csa.weight_b": "Of the next one",
    "csa.context": "Context, only printed",
    "csa.F_csa": "Output, only printed",
    "router.logits": "Logits",
    "router.bias": "Bias",
    "router.softplus": "Softplus",
    "router.sqrt": "Scores",
    "router.biased": "With bias",
    "router.selected": "Chosen experts",
    "router.gates": "Weights",
    f"{_FAR}.swa": "Window only",
    f"{_FAR}.csa": "CSA",
    f"{_FAR}.hca": "HCA",
    f"{_FAR}.dense": "Dense",
}
