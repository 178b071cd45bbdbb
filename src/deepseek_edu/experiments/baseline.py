"""A small causal transformer learns a language of commands: loss on sentences it trains on and on held-out ones.

    python -m deepseek_edu.experiments.baseline [--seed 1] [--out assets/runs/baseline.json]

Two blocks of width 32 are trained for 600 steps on 1 536 of the 1 920 sentences of `reference.toy_language`. The other
384 are never trained on. Every 25 steps all sentences of both lists are evaluated, 256 sentences are sampled, and the
probabilities in two held-out sentences are kept. A second run has the next seed and the same split. The step that is
reported, 600, was fixed beforehand: it is the last one, whatever the curve does.

`--data FILE` also writes what the widget `train-curve` shows, a part of the record.

Evidence label of every number here: measured. Not measured: anything about DeepSeek-V4.1-Flash, about text that people
wrote, or about time.
"""

import hashlib
import json
from pathlib import Path

import torch
from torch import nn

from deepseek_edu.experiments.record import chart, parser, significant, surroundings, write_record
from deepseek_edu.model.threads import limited
from deepseek_edu.reference import toy_language

SEED, SPLIT_SEED = 1, 0
STEPS, EVERY, BATCH, RATE = 600, 25, 64, 3e-3
BLOCKS, WIDTH, HEADS = 2, 32, 4
SAMPLES, SHOWN = 256, 3
PROBED = ("move the yellow star up twice then paint it", "paint the green arrow black then move it")
REPORTED = STEPS


class Block(nn.Module):
    """Causal attention and a two-layer perceptron, each behind a norm and added to the stream.

    Args:
        width: C; heads: H, of width C/H.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # B T C
        split = self.queries_keys_values(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4)  # B H T D each
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Transformer(nn.Module):
    """Ids [B T] to logits [B T V] of the next token.

    Args:
        vocabulary: V; length: the largest T.
        blocks, width, heads: of the model.
    """

    def __init__(self, vocabulary, length, blocks=BLOCKS, width=WIDTH, heads=HEADS):
        super().__init__()
        self.embed, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        for table in (self.embed, self.positions, self.head):
            nn.init.normal_(table.weight, std=0.02)  # so that the first predictions are nearly uniform

    def forward(self, ids):
        x = self.embed(ids) + self.positions.weight[: ids.shape[1]]  # B T C
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # B T V


def loss_of(model, tokens):
    """Return the mean cross entropy of every next token in tokens, int64 [S L], a scalar."""
    inputs, targets = toy_language.next_token_pairs(tokens)
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


@torch.no_grad()
def sample(model, count, seed):
    """Return `count` sentences, text, drawn word by word from the model's probabilities."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.full((count, 1), toy_language.VOCABULARY.index(toy_language.START))
    while ids.shape[1] <= model.positions.num_embeddings:
        shares = model(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(shares, 1, generator=draw)], 1)
    return [toy_language.decode(row) for row in ids.tolist()]


@torch.no_grad()
def look(model, both, step, seed):
    """Return the figures of one step: both losses, samples, and the probabilities in the probed sentences."""
    texts = sample(model, SAMPLES, 1000 * seed + step)
    inside = [sum(text in known for text in texts) for known in map(set, both)]
    losses = [loss_of(model, _tensor(some)).item() for some in both]
    rows = _tensor(probed())
    inputs, targets = toy_language.next_token_pairs(rows)
    taken = model(inputs).softmax(-1).gather(-1, targets[..., None])[..., 0]
    return {
        "step": step,
        "train": significant(losses[0], 5),
        "held_out": significant(losses[1], 5),
        "well_formed": sum(inside) / SAMPLES,
        "never_seen": inside[1] / SAMPLES,
        "same_colour": significant(_same_colour(model, both[1]), 3),
        "samples": texts[:SHOWN],
        "probed": [[significant(p, 3) for p in row] for row in taken.tolist()],
    }


def _same_colour(model, texts):
    """Return the mean probability that a thing is painted in the colour it has, in sentences that move it first."""
    rows = _tensor([text for text in texts if text.startswith("move")])
    shares = model(rows[:, :-1]).softmax(-1)[:, -2]  # of the word before END
    return shares.gather(-1, rows[:, 3:4]).mean().item()  # START move the COLOUR


def probed():
    """Return the two held-out sentences whose probabilities are kept, one of each word order."""
    held_out = lists()[1]
    return [next(text for text in held_out if text.startswith(start)) for start in PROBED]


def lists():
    """Return (train, held-out) sentences of the split."""
    return toy_language.split(toy_language.sentences(), SPLIT_SEED)


def train(seed, steps=STEPS):
    """Return the figures of every 25th step of one run, from step 0."""
    both = lists()
    with limited(1):  # sums in one order, and small matrices gain nothing from more
        torch.manual_seed(seed)
        tokens = _tensor(both[0])
        model = Transformer(len(toy_language.VOCABULARY), tokens.shape[1] - 1)
        optimiser = torch.optim.AdamW(model.parameters(), RATE)
        found = [look(model, both, 0, seed)]
        order = torch.empty(0, dtype=torch.int64)
        for step in range(1, steps + 1):
            if len(order) < BATCH:
                order = torch.cat([order, torch.randperm(len(tokens))])
            chosen, order = order[:BATCH], order[BATCH:]
            optimiser.zero_grad()
            loss_of(model, tokens[chosen]).backward()
            optimiser.step()
            if step % EVERY == 0:
                found.append(look(model, both, step, seed))
        return found


def _tensor(texts):
    return torch.from_numpy(toy_language.encode(texts))


def run(seed=SEED):
    """Return the whole record."""
    train_list, held_out = lists()
    every = {text: number for number, text in enumerate(toy_language.sentences())}
    runs = [{"seed": s, "steps": train(s)} for s in (seed, seed + 1)]
    model = Transformer(len(toy_language.VOCABULARY), len(held_out[0].split()) + 1)
    where = surroundings()
    columns = ("seed", "step", "train loss", "held-out loss", "well formed (%)", "never seen (%)")
    return {
        "id": "baseline",
        "title": "A two-block transformer learns a language of commands",
        "label": "measured",
        "command": f"python -m deepseek_edu.experiments.baseline --seed {seed}",
        "seed": seed,
        "model": f"{sum(p.numel() for p in model.parameters())} parameters: {BLOCKS} causal blocks of width {WIDTH} "
        f"with {HEADS} heads; AdamW at {RATE:g}, batches of {BATCH} sentences",
        **where,
        "versions": {**where["versions"], "torch": torch.__version__},
        "columns": list(columns),
        "rows": [
            [r["seed"], s["step"], s["train"], s["held_out"], *(round(100 * s[k], 1) for k in _SHARES)]
            for r in runs
            for s in r["steps"]
            if s["step"] % 100 == 0
        ],
        "notes": [
            f"The step that is reported, {REPORTED}, was fixed before the run. Both seeds train on the same list.",
            f"Losses are means over all words of a list, in nats. {SAMPLES} sentences are sampled at each step; "
            "‘well formed’ are those of the language, ‘never seen’ those in the held-out list.",
        ],
        "charts": [_chart(runs)],
        "split": {
            "seed": SPLIT_SEED,
            "train": len(train_list),
            "held_out": [every[text] for text in held_out],
            "sha256": [hashlib.sha256("\n".join(some).encode()).hexdigest() for some in (train_list, held_out)],
        },
        "reported": REPORTED,
        "samples": SAMPLES,
        "probed": probed(),
        "runs": runs,
    }


_SHARES = ("well_formed", "never_seen")


def _chart(runs):
    series = [
        (f"{words}, seed {r['seed']}", [s["step"] for s in r["steps"]], [s[key] for s in r["steps"]])
        for r in runs
        for key, words in (("train", "train"), ("held_out", "held out"))
    ]
    ends = "; ".join(f"{name}: {losses[0]:g} to {losses[-1]:g}" for name, _, losses in series)
    description = f"Mean cross entropy over all words of both lists. {ends}."
    return chart("Loss by step", description, ("step", "linear"), ("loss (nats per word)", "linear"), "line", series)


def browser_copy(record):
    """Return the part of a record that the widget shows, as JSON text with a line for each step."""
    kept = {key: record[key] for key in ("command", "machine", "date", "reported", "samples", "probed")}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in kept.items()]
    lines.append(f' "split_seed": {record["split"]["seed"]}')
    for r in record["runs"]:
        steps = ",\n  ".join(json.dumps(step) for step in r["steps"])
        lines.append(f' "seed {r["seed"]}": [\n  {steps}\n ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(arguments=None):
    """Train twice, print the curve and write the record."""
    command = parser("baseline", __doc__, SEED)
    command.add_argument("--data", type=Path, help="also write the part that the widget shows, NAME.json")
    options = command.parse_args(arguments)
    if options.data and options.data.suffix != ".json":
        command.error(f"{options.data}: found a name that does not end in .json; allowed: a file NAME.json")
    record = run(options.seed)
    for seed, step, train_loss, held_out, well_formed, never_seen in record["rows"]:
        figures = f"train {train_loss:.4f}  held out {held_out:.4f}  well formed {well_formed:5.1f} %"
        print(f"seed {seed}  step {step:>3}  {figures}  never seen {never_seen:4.1f} %")
    write_record(record, options.out)
    print(f"wrote {options.out}")
    if options.data:
        options.data.write_text(browser_copy(record), encoding="utf-8")
        print(f"wrote {options.data}")


if __name__ == "__main__":
    main()
