"""V4.1 said as plainly as possible: one token at a time, vectors in lists. Tests compare the package with it.

It follows the specification by itself. Of the package it takes the sizes and the quantisers, which are tested bit by
bit elsewhere. What layers share is kept the way the released code does it, "whatever was published last", instead of
by a schedule.
"""

import numpy as np

from deepseek_edu.reference import quant

from .plain_engram import engram_rows, engram_tables


def softplus(x):
    """log(1 + e^x)."""
    return np.logaddexp(0, x)


def sigmoid(x):
    """1 / (1 + e^−x)."""
    return 1 / (1 + np.exp(-x))


def norm(x, gain, eps):
    """RMSNorm of a vector."""
    return gain * x / np.sqrt(np.mean(x * x) + x.dtype.type(eps))


def best(scores, k):
    """The numbers of the k largest, rising; the earlier one on a tie."""
    return sorted(sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:k])


class PlainModel:
    """One sequence and its state.

    Args:
        c: ModelConfig, V4.1.
        w: {released name: array}.
        token_map: compressed id of each id.
        quantized: whether cached vectors are rounded to their formats.
        dtype: of all arithmetic.
        round_inputs: whether vectors are rounded before the matrices that the release stores in FP8 or FP4.
    """

    def __init__(self, c, w, token_map, quantized=False, dtype=np.float32, round_inputs=False):
        self.c, self.quantized, self.dtype, self.round_inputs = c, quantized, dtype, round_inputs
        self.w = {name: np.asarray(array, dtype) for name, array in w.items()}
        self.token_map, self.history, self.position = token_map, [], 0
        self.window = [[] for _ in range(c.n_layers + c.n_mtp_layers)]
        self.entries = {layer: [] for layer in c.kv_source_layers}
        self.keys = {layer: [] for layer in c.kv_source_layers}
        self.group = {layer: [] for layer in c.kv_source_layers}
        self.stale, self.newest_keys, self.current = False, None, None
        self.choices, self.hidden, self.hashes = {}, None, None
        self.tables = engram_tables(c)

    # Small parts

    def _turn(self, x, position, ratio, sign=1):
        c, width = self.c, self.c.rope_head_dim
        base = c.compress_rope_theta if ratio else c.rope_theta
        pairs = np.arange(width // 2)
        f = base ** (-2.0 * pairs / width)
        if ratio and c.original_seq_len:
            at = [
                width * np.log(c.original_seq_len / (turns * 2 * np.pi)) / (2 * np.log(base))
                for turns in (c.beta_fast, c.beta_slow)
            ]
            low, high = max(np.floor(at[0]), 0), min(np.ceil(at[1]), width - 1)
            slow = np.clip((pairs - low) / max(high - low, 1e-3), 0, 1)
            f = f * (1 - slow) + f / c.rope_factor * slow
        angle = sign * position * f
        a, b = x[..., -width::2], x[..., len(x.T) - width + 1 :: 2]
        turned = np.empty_like(x[..., -width:])
        turned[..., 0::2] = a * np.cos(angle) - b * np.sin(angle)
        turned[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
        return np.concatenate([x[..., :-width], turned], axis=-1).astype(self.dtype)

    def _fp8(self, x):
        return quant.quantize_fp8(x, 32).values.astype(self.dtype) if self.quantized else x

    def _fp4(self, x, block, kind):
        return quant.quantize_fp4(x, block, kind).values.astype(self.dtype) if self.quantized else x

    def _times(self, name, x):
        """The product with a matrix that the release stores in FP8 or FP4."""
        if self.round_inputs:
            x = np.concatenate([quant.quantize_fp8(part, 32).values for part in np.split(x, len(x) // 32)])
        return self.w[name] @ x.astype(self.dtype)

    def _mix(self, streams, prefix):
        c, n = self.c, self.c.hc_mult
        f = streams.reshape(-1)
        m = self.w[f"{prefix}_fn"] @ f / np.sqrt(np.mean(f * f) + self.dtype(c.norm_eps))
        scale, base = self.w[f"{prefix}_scale"], self.w[f"{prefix}_base"]
        pre = sigmoid(m[:n] * scale[0] + base[:n]) + self.dtype(c.hc_eps)
        post = 2 * sigmoid(m[n : 2 * n] * scale[1] + base[n : 2 * n])
        z = (m[2 * n :] * scale[2] + base[2 * n :]).reshape(n, n)
        s = np.exp(z - z.max(axis=1, keepdims=True))
        s = s / s.sum(axis=1, keepdims=True) + self.dtype(c.hc_eps)
        for half in range(2 * c.hc_sinkhorn_iters - 1):
            s = s / (s.sum(axis=half % 2, keepdims=True) + self.dtype(c.hc_eps))
        return pre, post, s

    # Attention

    def _attend(self, u, p, prefix, ratio, seen):
        """Output of attention of one query over the vectors that `seen(narrow)` returns."""
        c, w = self.c, self.w
        narrow = norm(self._times(f"{prefix}wq_a.weight", u), w[f"{prefix}q_norm.weight"], c.norm_eps)
        q = self._turn(self._times(f"{prefix}wq_b.weight", narrow).reshape(c.n_heads, c.head_dim), p, ratio)
        seen, heads = seen(narrow), []
        for h in range(c.n_heads):
            scores = [float(q[h] @ k) * c.head_dim**-0.5 for k in seen] + [float(w[f"{prefix}attn_sink"][h])]
            weights = np.exp(np.array(scores) - max(scores))
            heads.append(sum(a * k for a, k in zip(weights, seen, strict=False)) / weights.sum())
        heads = self._turn(np.array(heads, self.dtype), p, ratio, -1)
        groups = np.split(w[f"{prefix}wo_a.weight"], c.o_groups)
        low = [a @ part.reshape(-1) for a, part in zip(groups, np.split(heads, c.o_groups), strict=True)]
        return self._times(f"{prefix}wo_b.weight", np.concatenate(low))

    def _entry(self, u, p, prefix, ratio):
        entry = norm(self._times(f"{prefix}wkv.weight", u), self.w[f"{prefix}kv_norm.weight"], self.c.norm_eps)
        return self._fp8(self._turn(entry, p, ratio))

    def _compress(self, u, layer, p, prefix):
        c, w, ratio = self.c, self.w, self.c.compress_ratios[layer]
        gate = w[f"{prefix}compressor.wgate.weight"] @ u if ratio > 1 else np.zeros(c.head_dim, self.dtype)
        self.group[layer].append((w[f"{prefix}compressor.wkv.weight"] @ u, gate))
        if len(self.group[layer]) < ratio:
            return
        values, gates = (np.array(part) for part in zip(*self.group[layer], strict=True))
        self.group[layer] = []
        shares = np.exp(gates - gates.max(axis=0))
        latent = norm(
            (values * shares / shares.sum(axis=0)).sum(axis=0), w[f"{prefix}compressor.norm.weight"], c.norm_eps
        )
        key = norm(w[f"{prefix}indexer.wk.weight"] @ latent, w[f"{prefix}indexer.k_norm.weight"], c.norm_eps)
        first = p + 1 - ratio
        self.keys[layer].append(self._fp4(self._turn(key, first, ratio), 32, "e8m0"))
        self.entries[layer].append(self._fp4(self._turn(latent, first, ratio), 16, "e4m3"))
        self.newest_keys = layer

    def _choose(self, u, narrow, layer, p, prefix):
        c, w = self.c, self.w
        source = self.newest_keys if self.stale else self.current
        q = self._times(f"{prefix}indexer.wq_b.weight", narrow).reshape(c.index_n_heads, c.index_head_dim)
        q = [self._fp4(row, 32, "e8m0") for row in self._turn(q, p, c.compress_ratios[layer])]
        omega = w[f"{prefix}indexer.weights_proj.weight"] @ u / np.sqrt(c.index_head_dim * c.index_n_heads)
        count = len(self.entries[self.current])
        scores = [
            sum(o * max(x @ k, 0) for o, x in zip(omega, q, strict=True)) for k in self.keys.get(source, ())[:count]
        ]
        if layer == c.candidate_source_layer:
            size = c.candidate_block_size
            blocks = [max(scores[j : j + size]) for j in range(0, count, size)]
            blocks[-1:] = [np.inf] * len(blocks[-1:])  # the newest block
            kept = best(blocks, c.candidate_topk_blocks)
            self.pool = [j for j in range(count) if j // size in kept]
        allowed = list(range(len(scores)))
        if 0 <= c.candidate_source_layer < layer:
            allowed = [j for j in allowed if j in self.pool]
        self.choices[layer] = [allowed[j] for j in best([scores[j] for j in allowed], c.index_topk)]
        self.chosen = self.choices[layer]

    def _attention(self, u, layer, p):
        c, prefix, ratio = self.c, f"layers.{layer}.attn.", self.c.compress_ratios[layer]
        self.window[layer].append(self._entry(u, p, prefix, ratio))

        def seen(narrow):
            vectors = self.window[layer][-c.window_size :]
            if ratio:
                if layer in c.kv_source_layers:
                    self._compress(u, layer, p, prefix)
                    self.current = layer
                if layer in c.index_source_layers:
                    self._choose(u, narrow, layer, p, prefix)
                vectors = vectors + [self.entries[self.current][j] for j in self.chosen]
            return vectors

        return self._attend(u, p, prefix, ratio, seen)

    # Experts and memory

    def _experts(self, u, prefix, k, image):
        c, w = self.c, self.w

        def expert(name, weight):
            gate, up = (self._times(f"{prefix}{name}.{matrix}.weight", u) for matrix in ("w1", "w3"))
            if c.swiglu_limit:
                gate, up = np.minimum(gate, c.swiglu_limit), np.clip(up, -c.swiglu_limit, c.swiglu_limit)
            return self._times(f"{prefix}{name}.w2.weight", weight * gate * sigmoid(gate) * up)

        logits = w[f"{prefix}gate.weight"] @ u / self.dtype(c.gate_temp)
        s = {"sqrtsoftplus": lambda x: np.sqrt(softplus(x)), "sigmoid": sigmoid}.get(
            c.score_func, lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()
        )(logits)
        bias = w[f"{prefix}gate.bias_vl" if image and c.vision_n_layers else f"{prefix}gate.bias"]
        chosen = best(s + bias, k)
        total = sum(s[e] for e in chosen) if c.norm_topk_prob and k > 1 else 1
        y = sum(expert(f"experts.{e}", s[e] / total * self.dtype(c.route_scale)) for e in chosen)
        return y + expert("shared_experts", 1) if c.n_shared_experts else y

    def _memory(self, streams, prefix, rows):
        c, w = self.c, self.w
        table, scale = w[f"{prefix}embed.weight"], w[f"{prefix}embed.scale"]
        read = np.concatenate([table[r] * np.repeat(scale[r], 32)[: table.shape[1]] for r in rows])
        *keys, value = np.split(self._times(f"{prefix}wkv.weight", read), c.hc_mult + 1)
        changed = []
        for x, k, a, b in zip(streams, keys, w[f"{prefix}q_weight"], w[f"{prefix}k_weight"], strict=True):
            dot = np.sum(norm(x, a, c.norm_eps) * norm(k, b, c.norm_eps)) / np.sqrt(c.dim)
            changed.append(x + sigmoid(np.copysign(np.sqrt(max(abs(dot), 1e-6)), dot)) * value)
        return np.array(changed, self.dtype)

    # The whole

    def _layer(self, streams, a, prefix, attention, experts):
        w, eps = self.w, self.c.norm_eps
        pre, post, mix = self._mix(streams, f"{prefix}hc_attn")
        y = attention(norm(a @ streams, w[f"{prefix}attn_norm.weight"], eps))
        streams = np.array([post[j] * y + mix[:, j] @ streams for j in range(len(streams))], self.dtype)
        a = pre
        pre, post, mix = self._mix(streams, f"{prefix}hc_ffn")
        y = experts(norm(a @ streams, w[f"{prefix}ffn_norm.weight"], eps))
        return np.array([post[j] * y + mix[:, j] @ streams for j in range(len(streams))], self.dtype), pre

    def step(self, token, kind=None):
        """Take in one token (kind: its type, or None); return its logits. Sets hidden, hashes and choices."""
        c, w, p = self.c, self.w, self.position
        image = kind is not None and kind >= 0
        self.history.append(None if image else int(self.token_map[token]))
        self.hashes = engram_rows(self.history, int(self.token_map[c.engram_pad_id]), self.tables)
        streams = np.tile(w["embed.weight"][token], (c.hc_mult, 1))
        a, means = np.eye(c.hc_mult, dtype=self.dtype)[0], []
        for layer in range(c.n_layers):
            prefix = f"layers.{layer}."
            if layer in c.engram_layer_ids and not image:
                rows = self.hashes[c.engram_layer_ids.index(layer)]
                streams = self._memory(streams, f"{prefix}engram.", rows)
            if layer in c.dspark_target_layer_ids:
                means.append(streams.mean(axis=0))
            streams, a = self._layer(
                streams,
                a,
                prefix,
                lambda u, layer=layer: self._attention(u, layer, p),
                lambda u, prefix=prefix: self._experts(u, f"{prefix}ffn.", c.n_activated_experts, image),
            )
        self.hidden = np.concatenate(means) if means else None
        if c.n_mtp_layers:
            m = norm(self._times("mtp.0.main_proj.weight", self.hidden), w["mtp.0.main_norm.weight"], c.norm_eps)
            for stage in range(c.n_mtp_layers):
                self.window[c.n_layers + stage].append(self._entry(m, p, f"mtp.{stage}.attn.", 0))
        self.position += 1
        return w["head.weight"] @ norm(a @ streams, w["norm.weight"], c.norm_eps)

    def draft(self, token):
        """Draft a block after the next token: (ids, logits [block V], confidence [block])."""
        c, w = self.c, self.w
        rows = [
            np.tile(w["embed.weight"][t], (c.hc_mult, 1))
            for t in [token] + [c.dspark_noise_token_id] * (c.dspark_block_size - 1)
        ]
        mixes = [np.eye(c.hc_mult, dtype=self.dtype)[0]] * len(rows)
        for stage in range(c.n_mtp_layers):
            rows, mixes = zip(*self._stage(rows, mixes, stage), strict=True)
        last, ids, logits, sure = f"mtp.{c.n_mtp_layers - 1}.", [int(token)], [], []
        for x, a in zip(rows, mixes, strict=True):
            h, left = a @ x, w[f"{last}markov_head.embed.weight"][ids[-1]]
            base = w["head.weight"] @ norm(h, w[f"{last}norm.weight"], c.norm_eps)
            logits.append(base + w[f"{last}markov_head.head.weight"] @ left)
            sure.append(w[f"{last}confidence_head.proj.weight"][0] @ np.concatenate([h, left]))
            ids.append(int(np.argmax(logits[-1])))
        return np.array(ids), np.array(logits), np.array(sure)

    def _stage(self, rows, mixes, stage):
        """A draft stage: [(streams, A)] of all rows of the block, each of which sees all."""
        c, prefix, p = self.c, f"mtp.{stage}.", self.position
        inputs = [a @ x for x, a in zip(rows, mixes, strict=True)]
        inputs = [norm(u, self.w[f"{prefix}attn_norm.weight"], c.norm_eps) for u in inputs]
        own = [self._entry(u, p + number, f"{prefix}attn.", 0) for number, u in enumerate(inputs)]
        seen = self.window[c.n_layers + stage][-c.window_size :] + own

        def row(x, a, place):
            def attend(u):
                return self._attend(u, place, f"{prefix}attn.", 0, lambda _: seen)

            def experts(u):
                return self._experts(u, f"{prefix}ffn.", c.dspark_n_activated_experts, False)

            return self._layer(x, a, prefix, attend, experts)

        return [row(x, a, p + number) for number, (x, a) in enumerate(zip(rows, mixes, strict=True))]
