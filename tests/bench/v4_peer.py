"""DeepSeek-V4 here and in transformers: one configuration, equal weights, equal logits, and what each costs on a CPU.

`python -m tests.bench.v4_peer` prints prefill of 2048 tokens, cached decode after it, and peak memory. Both run in
float32 on two threads, in turn; the ratio of each pair counts. All of it in fresh processes under four conditions:

    idle              threads as PyTorch starts them, which spin while they wait; nothing else runs, if the machine
                      was idle before
    one core shared   the same, while another process multiplies matrices (busy.py)
    both shared       the same, with as many other processes as there are threads
    sleeping threads  nothing else runs, and threads sleep while they wait (OMP_WAIT_POLICY=passive)

The promise was made for two shared cores on which the peer prefills 140 to 350 tokens/s and takes 130 to 150 ms a
step. The peer's prefill comes near that with one core shared, its step with both. What either side takes under each
condition, and how far single pairs lie apart, is in the recorded rows (model_peer.py).
`python -m tests.bench.v4_peer "both shared"` measures one condition alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model.linear import times as times_vector
from deepseek_edu.model.threads import limited
from deepseek_edu.model.v4_model import V4Model
from tests.bench.busy import busy

ROOT = Path(__file__).parents[2]
THREADS = 2
TOKENS = 2048
STEPS = 60
FEWEST_STEPS, LONGEST = 6, 5.0
"""Fewer steps are run, but six, where all would take more seconds than LONGEST."""
ENOUGH = 150
"""Seconds after which no further pair is begun."""


@dataclass(frozen=True)
class Condition:
    """Under what both sides run.

    Attributes:
        passive: set OMP_WAIT_POLICY=passive; else it is unset, as a user has it.
        others: processes that multiply matrices beside the two sides.
    """

    passive: bool = False
    others: int = 0


CONDITIONS = {
    "idle": Condition(),
    "one core shared": Condition(others=1),
    "both shared": Condition(others=THREADS),
    "sleeping threads": Condition(passive=True),
}
GAP = 2e-4
"""Largest difference of logits of size 5 that float32 explains here: 8 layers, sums over 2048 numbers."""


def benchmark_config():
    """Eight layers (two windows, then CSA and HCA in turn), width 512, 32 experts of 256, four active: 114 M."""
    ratios = (0, 0, 4, 128, 4, 128, 4, 128)
    return ModelConfig(
        generation="v4",
        vocab_size=2048,
        dim=512,
        n_layers=8,
        norm_eps=1e-6,
        n_heads=8,
        head_dim=128,
        rope_head_dim=64,
        q_lora_rank=128,
        o_groups=4,
        o_lora_rank=128,
        window_size=128,
        compress_ratios=ratios,
        kv_source_layers=tuple(layer for layer, ratio in enumerate(ratios) if ratio),
        index_source_layers=tuple(layer for layer, ratio in enumerate(ratios) if ratio == 4),
        index_n_heads=8,
        index_head_dim=64,
        index_topk=64,
        moe_inter_dim=256,
        n_routed_experts=32,
        n_activated_experts=4,
        route_scale=1.5,
        swiglu_limit=10.0,
        n_hash_layers=2,
    )


def our_model(seed=0):
    """V4Model with random weights; the same for the same seed."""
    torch.manual_seed(seed)
    model = V4Model(benchmark_config()).eval()
    with torch.no_grad():  # what begins at 0 or 1 shall count too
        for name, parameter in model.named_parameters():
            if name.endswith(("attn_sink", ".ape", "gate.bias")):
                parameter.normal_(std=0.1)
    return model


def parameters(model):
    """How many numbers a model has."""
    return sum(parameter.numel() for parameter in model.parameters())


def build_pair(seed=0):
    """(V4Model, DeepseekV4ForCausalLM) with equal weights; refuses a pair whose logits differ."""
    from tests.model.transformers_v4 import peer

    ours = our_model(seed)
    theirs = peer(ours.state_dict(), ours.config)
    ids = token_ids(300)
    with torch.no_grad():
        got = ours.prefill(ids, ours.new_cache(quantized=False)).logits
        expected = theirs(ids).logits
    gap = float((got - expected).abs().max())
    if not gap < GAP:
        raise ValueError(f"the pair must give equal logits, within {GAP}; got a difference of {gap}")
    return ours, theirs


def token_ids(count, seed=1):
    """Random ids [1 count]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(benchmark_config().vocab_size, (1, count), generator=generator)


class Ours:
    """Prefill and decode of V4Model."""

    def __init__(self, model):
        self.model = model

    def prefill(self, ids):
        self.cache = self.model.new_cache(quantized=False)
        return self.model.prefill(ids, self.cache, logits="last").logits[:, -1]

    def decode(self, ids):
        return self.model.decode(ids, self.cache).logits[:, -1]


class Theirs:
    """Prefill and decode of DeepseekV4ForCausalLM."""

    def __init__(self, model):
        self.model = model

    @torch.inference_mode()
    def prefill(self, ids):
        output = self.model(ids, use_cache=True, logits_to_keep=1)
        self.cache = output.cache
        return output.logits[:, -1]

    @torch.inference_mode()
    def decode(self, ids):
        return self.model(ids, cache=self.cache, use_cache=True).logits[:, -1]


@dataclass
class Times:
    """Seconds of one prefill and of one decode step (median)."""

    prefill: float
    step: float


def times(side, ids, steps=STEPS):
    """Run one side: a prefill of ids, then greedy steps."""
    began = time.perf_counter()
    token = side.prefill(ids).argmax(dim=-1)
    prefill, took = time.perf_counter() - began, []
    while len(took) < steps and (len(took) < FEWEST_STEPS or sum(took) < LONGEST):
        began = time.perf_counter()
        token = side.decode(token[:, None]).argmax(dim=-1)
        took.append(time.perf_counter() - began)
    return Times(prefill, statistics.median(took))


def compare(pairs=3, others=0, tokens=TOKENS):
    """Measure both sides in turn, beside so many busy processes: list of (Times of ours, Times of theirs)."""
    torch.set_num_threads(THREADS)
    ours, theirs = (kind(model) for kind, model in zip((Ours, Theirs), build_pair(), strict=True))
    for side in (ours, theirs):
        times(side, token_ids(128), 4)
    began, found = time.perf_counter(), []
    with busy(others):
        while len(found) < pairs and (not found or time.perf_counter() - began < ENOUGH):
            found.append((times(ours, token_ids(tokens)), times(theirs, token_ids(tokens))))
    return found


def compare_under(condition, pairs=3):
    """What `compare` gives in a fresh process under one of CONDITIONS."""
    wanted = CONDITIONS[condition]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    if wanted.passive:
        environment["OMP_WAIT_POLICY"] = "passive"
    found = _fresh("compare", str(pairs), str(wanted.others), env=environment)
    return [tuple(Times(**side) for side in pair) for pair in found]


def _fresh(*arguments, env=None):
    """What this file prints as JSON in its last line when a new process runs it with these arguments."""
    command = [sys.executable, "-m", "tests.bench.v4_peer", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=env).stdout
    return json.loads(output.splitlines()[-1])


def prefill_operations(tokens=TOKENS):
    """Multiplications and additions that the forward pass of a prompt needs, by the formulas of its mechanisms."""
    c = benchmark_config()
    head = c.n_heads * c.head_dim
    each = c.dim * (c.q_lora_rank + c.head_dim) + c.q_lora_rank * head  # query and entry
    each += head * c.o_lora_rank + c.o_groups * c.o_lora_rank * c.dim  # output
    each += (c.n_activated_experts + 1) * 3 * c.dim * c.moe_inter_dim + c.dim * c.n_routed_experts
    each += 2 * (2 + c.hc_mult) * c.hc_mult * c.hc_mult * c.dim  # coefficients
    total = c.n_layers * each * tokens
    for ratio in c.compress_ratios:
        window = sum(min(t + 1, c.window_size) for t in range(tokens))
        visible = [(t + 1) // ratio if ratio else 0 for t in range(tokens)]
        if ratio == 4:
            total += tokens * c.dim * 4 * (c.head_dim + c.index_head_dim)  # both compressors, two series each
            total += tokens * (c.q_lora_rank * c.index_n_heads * c.index_head_dim + c.dim * c.index_n_heads)
            total += sum(visible) * c.index_n_heads * c.index_head_dim
            visible = [min(count, c.index_topk) for count in visible]
        elif ratio:
            total += tokens * c.dim * 2 * c.head_dim
        total += (window + sum(visible)) * 2 * head
    return 2 * total


def step_bytes():
    """Bytes of the weights that one decode step reads: all but the embeddings and the experts that are not chosen."""
    c, model = benchmark_config(), our_model()
    experts = sum(parameters(layer.ffn.experts) for layer in model.layers)
    read = parameters(model) - parameters(model.embed) - experts + experts * c.n_activated_experts // c.n_routed_experts
    return 4 * read


def reading_rate(rows=16384, width=2048, runs=9):
    """Bytes per second at which one core reads a float32 matrix that no cache holds, to multiply it with a vector."""
    matrix, vector = torch.randn(rows, width).numpy(), torch.randn(width).numpy()
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        times_vector(matrix, vector)
        took.append(time.perf_counter() - began)
    return matrix.nbytes / statistics.median(took)


def matrix_rate(size=2048, runs=5):
    """Operations per second of a large matrix product on THREADS threads of this machine."""
    a, b = torch.randn(2, size, size)
    took = []
    with limited(THREADS):
        a @ b
        for _ in range(runs):
            began = time.perf_counter()
            a @ b
            took.append(time.perf_counter() - began)
    return 2 * size**3 / statistics.median(took)


def peak_memory(side):
    """Bytes that a fresh process holds at most while it loads one model and prefills: "ours" or "theirs"."""
    return _fresh("memory", side)["prefill"]


def _memory(side):
    """Print the bytes held at most, as JSON: with the model in memory, and after a prefill and a step.

    The peer's weights are its own random ones, so that no copy is counted.
    """
    torch.set_num_threads(THREADS)
    if side == "ours":
        runner = Ours(our_model())
    else:
        from transformers import DeepseekV4ForCausalLM

        from tests.model.transformers_v4 import peer_config

        runner = Theirs(DeepseekV4ForCausalLM(peer_config(benchmark_config())).eval())
    model = _most_held()
    runner.decode(runner.prefill(token_ids(TOKENS)).argmax(dim=-1)[:, None])
    print(json.dumps({"model": model, "prefill": _most_held()}))


def _most_held():
    """Peak resident bytes of this process; unlike getrusage's, they do not begin with those of its parent."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main(conditions=tuple(CONDITIONS)):
    """Print the rows of model_peer.py under some conditions; the rest only with all of them."""
    from tests.bench import model_peer  # which imports this module

    if unknown := [name for name in conditions if name not in CONDITIONS]:
        sys.exit(f"error: condition {unknown[0]!r}; allowed: {', '.join(map(repr, CONDITIONS))}")

    for row in model_peer.rows(conditions):
        print(row.line(), flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:]
    if asked[:1] == ["memory"]:
        _memory(asked[1])
    elif asked[:1] == ["compare"]:
        print(json.dumps([[asdict(side) for side in pair] for pair in compare(*map(int, asked[1:]))]))
    else:
        main(asked or tuple(CONDITIONS))
