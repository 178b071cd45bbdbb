"""Wrong variants of V4 in PyTorch: routing, residual streams, drafting."""

from tests.mutants.torch_kit import mutant

TABLE = "properties_v4:test_a_table_chooses_the_experts_and_the_scores_weigh_them"
ROUTER = "properties_v4:test_the_bias_chooses_and_the_scores_without_it_weigh"
EXPERTS = "properties_v4:test_every_token_gets_its_experts_clamped_and_the_shared_one_without_a_clamp"
AROUND = "properties_v4_streams:test_a_sub_block_collapses_the_streams_with_coefficients_of_their_own"
COLLAPSE = "properties_v4_streams:test_the_last_streams_collapse_with_logistic_weights_of_their_own"
STAGES = (
    "properties_v4_streams:test_the_last_draft_stage_collapses_its_streams_by_its_own_head_and_the_others_by_nothing"
)
DRAFTS = "properties_v4_feeding:test_drafts_read_the_outputs_of_their_layers_and_the_context_of_their_windows"
PREVIEW = "v4_serving:test_the_previews_layer_is_that_of_numpy_whole_and_cached"

ROUTING = (
    mutant(
        "v4_experts",
        "in the first layers a table chooses the experts",
        "it is read by the place in the batch",
        "experts = self.tid2eid[ids]",
        "experts = self.tid2eid[torch.arange(len(ids))]",
        TABLE,
    ),
    mutant(
        "v4_experts",
        "the scores weigh what the table chose",
        "all chosen experts count the same",
        "weights = scores.gather(-1, experts)",
        "weights = torch.ones_like(scores.gather(-1, experts))",
        TABLE,
    ),
    mutant(
        "v4_experts",
        "weights of a table's experts sum to the route scale",
        "they are not divided by their sum",
        "weights * (c.route_scale / weights.sum(dim=-1, keepdim=True))",
        "weights * c.route_scale",
        TABLE,
    ),
    mutant(
        "v4_experts",
        "the correction bias only chooses",
        "it is in the scores that weigh",
        "moe.route(scores, self.bias, self.k",
        "moe.route(scores + self.bias, 0 * self.bias, self.k",
        ROUTER,
    ),
    mutant(
        "v4_experts",
        "the correction bias chooses",
        "it does not",
        "moe.route(scores, self.bias, self.k",
        "moe.route(scores, 0 * self.bias, self.k",
        ROUTER,
    ),
    mutant(
        "v4_experts",
        "the shared expert of V4 has no clamp",
        "it has that of the routed ones",
        "        self.shared_experts.limit = 0.0\n",
        "        self.shared_experts.limit = config.swiglu_limit\n",
        EXPERTS,
    ),
    mutant(
        "v4_experts",
        "the weight of each token goes to its own expert",
        "weights stay in the order of the tokens",
        "shares = weights.to(u.dtype).flatten()[order, None].split(counts)",
        "shares = weights.to(u.dtype).flatten()[:, None].split(counts)",
        EXPERTS,
    ),
    mutant(
        "v4_experts",
        "padding is not run and not counted",
        "its place in the batch gets the output of another",
        "return torch.zeros_like(u).masked_scatter(valid[..., None], y)",
        "return torch.zeros_like(u).masked_scatter(valid.flip(0)[..., None], y)",
        EXPERTS,
    ),
)

STREAMS = (
    mutant(
        "v4_streams",
        "V4's coefficients are those of the same streams",
        "one token is collapsed by one-hot weights, as V4.1's first",
        "y = act(torch.from_numpy(pre @ flat)",
        "y = act(torch.from_numpy(flat[0])",
        AROUND,
    ),
    mutant(
        "v4_streams",
        "V4's coefficients are those of the same streams",
        "the collapse takes the weights of the expansion where nothing is trained",
        "    y = act(mhc.collapse(streams, own.pre))\n    mixed",
        "    y = act(mhc.collapse(streams, own.post))\n    mixed",
        AROUND,
    ),
    mutant(
        "v4_streams",
        "streams are mixed over the first index of S",
        "over the second",
        "own.mix.flatten(0, 1).mT, streams",
        "own.mix.flatten(0, 1), streams",
        AROUND,
    ),
    mutant(
        "v4_block",
        "the last streams collapse by logistic weights of their own",
        "by a softmax",
        "(mixes * self.hc_head_scale + self.hc_head_base).sigmoid() + self.config.hc_eps",
        "(mixes * self.hc_head_scale + self.hc_head_base).softmax(-1) + self.config.hc_eps",
        COLLAPSE,
    ),
    mutant(
        "v4_block",
        "the last streams collapse by logistic weights of their own",
        "their size counts",
        "        mixes = mixes * reciprocal_rms(flat, self.config.norm_eps)  # B T S\n",
        "",
        COLLAPSE,
    ),
    mutant(
        "v4_block",
        "the last streams collapse by logistic weights of their own",
        "without eps",
        ".sigmoid() + self.config.hc_eps",
        ".sigmoid()",
        COLLAPSE,
    ),
)

DRAFTING = (
    mutant(
        "v4_block",
        "the preview's layer joins streams and the next token's embedding",
        "it reads the streams alone",
        "return self.e_proj(self.enorm(embedded))[:, :, None] + self.h_proj(self.hnorm(streams))",
        "return self.h_proj(self.hnorm(streams))",
        "properties_v4_streams:test_the_previews_layer_joins_the_streams_and_the_next_embedding",
    ),
    mutant(
        "v4_block",
        "the preview's layer joins streams and the next token's embedding",
        "the streams are not normalised",
        "self.h_proj(self.hnorm(streams))",
        "self.h_proj(streams)",
        "properties_v4_streams:test_the_previews_layer_joins_the_streams_and_the_next_embedding",
    ),
    mutant(
        "v4_model",
        "the preview's layer reads the next token",
        "the present one",
        "layer.join(streams, self.embed(following))",
        "layer.join(streams, self.embed(ids))",
        PREVIEW,
    ),
    mutant(
        "v4_model",
        "the preview's layer has a norm and a collapse of its own",
        "it takes those of the backbone",
        "self.head(layer.norm(layer.collapse(streams)))",
        "self.head(self.norm(self.collapse(streams)))",
        PREVIEW,
    ),
    mutant(
        "v4_model",
        "the preview's layer keeps a window of its own",
        "that of the last layer",
        "layer.attn(u, call, call.cache.draft_windows[0])",
        "layer.attn(u, call, call.cache.windows[-1])",
        PREVIEW,
    ),
    mutant(
        "v4_run",
        "the drafter of 31 July reads the outputs of its layers",
        "their inputs",
        "if layer.plan.index in self._read:\n            self._means[layer.plan.index] = ",
        "if layer.plan.index + 1 in self._read:\n            self._means[layer.plan.index + 1] = ",
        DRAFTS,
    ),
    mutant(
        "v4_run",
        "the drafter of 31 July reads the outputs of its layers",
        "only the first stream of them",
        "self._means[layer.plan.index] = self.streams.mean(dim=2)",
        "self._means[layer.plan.index] = self.streams[:, :, 0]",
        DRAFTS,
    ),
    mutant(
        "v4_model",
        "the draft windows take in every processed token",
        "they stay empty",
        "        if main_hidden is not None:\n",
        "        if main_hidden is None:\n",
        DRAFTS,
    ),
    mutant(
        "v4_block",
        "the last draft stage collapses by its own head",
        "with the weights that came in",
        "return streams, self.head_pre(streams) if self.last else pre",
        "return streams, pre",
        STAGES,
    ),
    mutant(
        "v4_block",
        "draft stages take as many experts as the drafter has",
        "as many as the backbone's layers",
        "V4MoE(count, k, config, False, where), where",
        "V4MoE(count, config.n_activated_experts, config, False, where), where",
        STAGES,
    ),
)

MUTANTS = (*ROUTING, *STREAMS, *DRAFTING)
