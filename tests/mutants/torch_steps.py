"""Wrong variants of one token on a CPU: step.py and the arithmetic it uses."""

from tests.mutants.torch_kit import mutant

ALONE = "step:test_a_sequence_fed_by_steps_alone_is_that_of_one_prefill"
REPLAY = "step:test_steps_through_a_replayed_prefix_make_no_entry_anew"

MUTANTS = (
    mutant(
        "step",
        "a model that rounds inputs takes the layers for many, which round",
        "a step takes its tokens and rounds nothing",
        "        and not run.model.rounds_inputs\n",
        "",
        "round_inputs:test_one_token_at_a_time_agrees_with_all_at_once",
    ),
    mutant(
        "step",
        "the experts collapse with the A of this layer's attention",
        "with that of the layer before",
        "y = self.feed(layer.ffn, normed(following @ streams, layer.ffn_norm))",
        "y = self.feed(layer.ffn, normed(pre @ streams, layer.ffn_norm))",
        ALONE,
    ),
    mutant(
        "step",
        "a token sees the window and what is no older",
        "it sees a position more",
        "(back >= self.config.window_size)",
        "(back > self.config.window_size)",
        ALONE,
    ),
    mutant(
        "step",
        "a replayed window begins where the replay did",
        "it begins at 0",
        "start = int(ring.start[0])",
        "start = 0",
        REPLAY,
    ),
    mutant(
        "step",
        "entries of a replayed prefix are not made anew",
        "they are stored again behind the others",
        "if number < int(cache.entries[plan.index].counts[0]):",
        "if number < 0:",
        REPLAY,
    ),
    mutant(
        "step",
        "an entry of a pair turns at the position of its first token",
        "of its last",
        "first = torch.tensor([[number * plan.ratio]])",
        "first = torch.tensor([[self.position]])",
        ALONE,
    ),
    mutant(
        "step",
        "an indexer chooses from the candidates only",
        "from all entries",
        "members = self.pool[self.pool < visible]",
        "members = torch.arange(visible)",
        ALONE,
    ),
    mutant(
        "step",
        "index queries are quantised like index keys",
        "they are not",
        "queries = form.decode(form.encode(queries)).numpy()",
        "queries = queries.numpy()",
        ALONE,
    ),
    mutant(
        "step",
        "the newest block is always a candidate",
        "it has to earn its place",
        "best[-1] = torch.inf",
        "best[-1] += 0",
        "step:test_the_newest_block_of_a_step_is_a_candidate",
    ),
    mutant(
        "step",
        "reusing layers take the choice made last",
        "that of the layer which owns the entries",
        "gather(self.choices[plan.chooser][None, None])",
        "gather(self.choices[plan.owner][None, None])",
        ALONE,
    ),
    mutant(
        "one_token",
        "the last keys are scored too",
        "only as many as make whole products",
        "np.maximum(queries @ keys[whole:].T, 0)",
        "np.maximum(0 * queries @ keys[whole:].T, 0)",
        "step:test_scores_of_one_token_are_those_of_many",
    ),
    mutant(
        "quant",
        "the exponent of a float16 counts from 15, that of E4M3 from 7",
        "one less",
        "decode_e8m0(scale_bytes).mul_(2.0**8)",
        "decode_e8m0(scale_bytes).mul_(2.0**7)",
        "quant:test_eight_bit_codes_are_read_back_the_fast_way_as_by_the_type_of_pytorch",
    ),
)
