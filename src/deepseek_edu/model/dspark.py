"""DSpark: small layers that draft a block of tokens at once, from what the backbone has just computed.

Source: report, section 2.4.3; reference `DSparkBlock`, `MTPBlock`; in words in reference/dspark.py. All rows of the
batch are drafted together; each at its own position.
"""

from dataclasses import dataclass

import torch
from torch import nn

from deepseek_edu.model import mhc
from deepseek_edu.model.attention import Attention
from deepseek_edu.model.block import Block
from deepseek_edu.model.linear import Matrix
from deepseek_edu.model.moe import MoE
from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.model.span import Span
from deepseek_edu.model.tiles import numbers


@dataclass(frozen=True)
class Draft:
    """Proposals for the positions after the token that began the block."""

    ids: torch.Tensor  # int64 [B 1+block]: the given token, then the drafts
    logits: torch.Tensor  # [B block V], with the Markov bias: the distribution each draft was taken from
    confidence: torch.Tensor  # [B block], logits of being accepted, given that the drafts before were


class Weight(nn.Module):
    """A table that is looked up: weight [rows width]."""

    def __init__(self, rows, width, where):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width, **where))
        nn.init.normal_(self.weight)

    def forward(self, ids):
        """Return (…, width)."""
        return nn.functional.embedding(ids, self.weight)


class MarkovHead(nn.Module):
    """A low-rank bigram: what the token to the left makes likely, [.. V] = head · embed[left]."""

    def __init__(self, config, where):
        super().__init__()
        self.embed = Weight(config.vocab_size, config.dspark_markov_rank, where)
        self.head = Matrix(config.vocab_size, config.dspark_markov_rank, where)


class ConfidenceHead(nn.Module):
    """One number from a row's hidden vector and the embedding of its left neighbour."""

    def __init__(self, config, where):
        super().__init__()
        self.proj = Matrix(1, config.dim + config.dspark_markov_rank, where)


class Stage(Block):
    """One draft stage. The first also projects the backbone's streams, the last also has the heads."""

    def __init__(self, stage, config, where):
        experts = MoE(config.dspark_n_routed_experts, config.dspark_n_activated_experts, config, where)
        super().__init__(Attention(config, where), experts, config, where)
        if stage == 0:
            self.main_proj = Matrix(config.dim, config.dim * len(config.dspark_target_layer_ids), where)
            self.main_norm = RMSNorm(config.dim, config.norm_eps, where)
        if stage == config.n_mtp_layers - 1:
            self.norm = RMSNorm(config.dim, config.norm_eps, where)
            self.markov_head = MarkovHead(config, where)
            self.confidence_head = ConfidenceHead(config, where)


def insert_context(main_hidden, span, stages, cache):
    """Write the context entries of processed positions into the windows of all stages.

    Args:
        main_hidden: [B T targets·C].
        span: their Span. A gap before it restarts the windows.
        stages: the draft stages; cache: Cache.
    """
    m = stages[0].main_norm(stages[0].main_proj(main_hidden))  # B T C
    for stage, ring in zip(stages, cache.draft_windows, strict=True):
        cache.restart(ring, span.first)
        ring.write(span, stage.attn.entry(m, span.rotation(0)))


def rows_through_stages(streams, span, model, cache):
    """Run the rows of a block through the stages: hidden [B R C] from streams [B R S C].

    Every row sees the context window before the block and all rows of the block, also those to its right.

    Args:
        span: Span of the rows; it begins where the context ends.
        model: model.Model; cache: Cache, only read.
    """
    config = model.config
    window = config.window_size
    pre = mhc.one_hot(*streams.shape[:2], config.hc_mult, streams.dtype, streams.device)  # B R S
    rotation = span.rotation(0)
    line = span.line_positions(window)  # B W+R
    for stage, ring in zip(model.mtp, cache.draft_windows, strict=True):
        exists = line >= ring.start.to(line.device)[:, None]  # B W+R
        visible = exists[:, None].expand(-1, span.width, -1)  # B R W+R

        def attend(u, stage=stage, ring=ring, visible=visible):
            _, queries = stage.attn.queries(u, rotation)
            rows = ring.row_format.read_back(stage.attn.entry(u, rotation))  # B R D
            keys = torch.cat([ring.past(span, window), rows], dim=1)  # B W+R D
            return stage.attn.output(stage.attn.attend(queries, [(keys, visible)]), rotation)

        streams, pre = stage(streams, pre, attend, stage.ffn)
    return mhc.collapse(streams, pre)


def greedy(logits, _row):
    """Take the most likely token of each row of logits [B V]: int64 [B]."""
    return logits.argmax(dim=-1)


def draft(tokens, model, cache, pick=greedy):
    """Draft a block after each row's next token.

    Args:
        tokens: int64 [B], sampled by the backbone and not yet processed; they will stand at cache.lengths.
        model: model.Model; cache: Cache, only read.
        pick: function (logits [B V], row of the block) -> ids [B] that takes drafts from their distributions.

    Returns:
        Draft.

    Raises:
        ValueError: nothing has been processed yet in some row, tokens are no ids, one for each row, or the model has no
            draft stages.
    """
    config = model.config
    if not len(model.mtp):
        raise ValueError("the model has no draft stages (config.n_mtp_layers is 0); generate with speculative=False")
    if bool((cache.lengths < 1).any()) or bool((cache.decoded != cache.lengths).any()):
        raise ValueError(
            f"the draft windows must hold every row's last position; rows have {cache.lengths.tolist()} tokens and the "
            f"windows reach to {cache.decoded.tolist()}; prefill first"
        )
    tokens = numbers(tokens, "tokens", model.device)
    whole = not tokens.is_floating_point() and tokens.shape == (cache.batch,)
    if not whole or tokens.min() < 0 or tokens.max() >= config.vocab_size:
        raise ValueError(f"tokens must be {cache.batch} ids 0 … {config.vocab_size - 1}; got {tokens.tolist()}")
    block = config.dspark_block_size
    ids = torch.full((len(tokens), block), config.dspark_noise_token_id, device=tokens.device)
    ids[:, 0] = tokens
    counts = torch.full((len(tokens),), block)
    span = Span(cache.lengths.clone(), counts, block, config, cache.device, cache.dtype)
    streams = model.embed(ids)[:, :, None].repeat(1, 1, config.hc_mult, 1)  # B R S C
    hidden = rows_through_stages(streams, span, model, cache)  # B R C
    last = model.mtp[-1]
    logits = model.head(last.norm(hidden))  # B R V
    drafts, biased, confidence = [tokens], [], []
    for row in range(block):
        neighbour = last.markov_head.embed(drafts[-1])  # B rank
        biased.append(logits[:, row] + last.markov_head.head(neighbour))  # B V
        confidence.append(last.confidence_head.proj(torch.cat([hidden[:, row], neighbour], dim=-1))[:, 0])
        drafts.append(pick(biased[-1], row))
    return Draft(torch.stack(drafts, dim=1), torch.stack(biased, dim=1), torch.stack(confidence, dim=1))
