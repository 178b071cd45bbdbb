"""Every size and option of a model, in one frozen and validated dataclass, and the schedule of its layers.

`ModelConfig.v41_flash()` and `ModelConfig.v4_flash_0731()` are the released configurations, `ModelConfig.tiny()` has
the same mechanisms in eight layers of width 32. The field names are those of the released reference code
(`inference/config.json`); `from_released` also reads the names of the Hugging Face `config.json`.

What a layer does follows from four lists (report, sections 2.3.1 and 4.2.1; reference `ModelArgs`):

    compress_ratios       0: window only; r: one compressed entry for r tokens
    kv_source_layers      layers that make compressed entries and index keys; later layers read them
    index_source_layers   layers that choose entries (Top-k); later layers reuse the choice
    engram_layer_ids      layers with an n-gram memory

so `config.schedule()` is the table of the model. Standard library only.
"""

from dataclasses import asdict, dataclass, fields, replace

from deepseek_edu.config_checks import ConfigError, validate
from deepseek_edu.config_names import read_released
from deepseek_edu.config_presets import TINY, V4_FLASH_0731, V41_FLASH


@dataclass(frozen=True)
class LayerPlan:
    """What one layer does. Layer numbers are zero-based; the draft stages follow the backbone's layers.

    Attributes:
        index: number of the layer.
        side: "encoder", "decoder" or "draft".
        ratio: tokens for one compressed entry; 0 means that the layer reads its window only.
        mode: "window", "full" (makes entries and chooses), "reindex" (chooses among entries of its owner) or
            "reuse" (takes both from below); for V4 "window", "csa" or "hca".
        owner: layer whose compressed entries and index keys it reads, or None.
        chooser: layer whose Top-k list it uses, or None.
        pool: what it has to do with the candidate pool: "source", "restricted" or "".
        engram: position of its module among the Engram modules, or None.
        hash_routed: whether a table, not the router, picks its experts (V4).
    """

    index: int
    side: str
    ratio: int
    mode: str
    owner: int | None = None
    chooser: int | None = None
    pool: str = ""
    engram: int | None = None
    hash_routed: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Sizes and options of a model. Widths count numbers, lengths count tokens, ids are zero-based.

    Raises:
        ConfigError: a value does not fit; the message names the field.
    """

    generation: str = "v4.1"  # "v4.1" or "v4": which forward pass the fields describe
    # whole model
    vocab_size: int  # token ids
    dim: int  # width of the residual streams
    n_layers: int  # backbone layers
    n_mtp_layers: int = 0  # draft stages (DSpark) after the backbone
    max_positions: int = 1_048_576  # longest sequence the model was trained for; longer ones are not refused
    norm_eps: float = 1e-20  # under the root of every RMSNorm
    bos_token_id: int = 0  # begins a text
    eos_token_id: int = 1  # ends a text
    pad_token_id: int = 2  # fills rows of a batch
    # attention
    n_heads: int  # query heads
    head_dim: int  # width of the one vector that is key and value of all heads
    rope_head_dim: int  # last channels of a head that are rotated
    q_lora_rank: int  # width of the low-rank query
    o_groups: int  # groups of heads in the output projection
    o_lora_rank: int  # width of one group's output
    window_size: int  # last positions that every query sees, its own included
    # positions
    rope_theta: float = 10_000.0  # layers with ratio 0
    compress_rope_theta: float = 160_000.0  # everything in layers with ratio > 0, stretched by YaRN
    original_seq_len: int = 65_536  # length before stretching; 0 switches YaRN off
    rope_factor: float = 16.0  # stretching
    beta_fast: float = 32.0  # rotations in original_seq_len above which a channel keeps its frequency
    beta_slow: float = 1.0  # and below which it is divided by rope_factor
    # compression, sharing and choosing
    compress_ratios: tuple  # one per layer and draft stage
    kv_source_layers: tuple = ()  # layers that make compressed entries and index keys
    index_source_layers: tuple = ()  # layers that choose entries
    index_n_heads: int = 0  # small heads that score entries
    index_head_dim: int = 0  # their width
    index_topk: int = 0  # compressed entries that a query reads
    candidate_source_layer: int = -1  # owner whose scores make the pool for all that choose above it; −1: none
    candidate_topk_blocks: int = 0  # blocks in the pool
    candidate_block_size: int = 0  # entries in a block
    # experts
    moe_inter_dim: int  # width inside one expert
    n_routed_experts: int  # experts of a layer that a router chooses from
    n_activated_experts: int  # chosen for a token
    n_shared_experts: int = 1  # experts that every token meets
    score_func: str = "sqrtsoftplus"  # from router logits to scores: "sqrtsoftplus", "sigmoid" or "softmax"
    gate_temp: float = 1.0  # divides the router's logits
    norm_topk_prob: bool = True  # weights of the chosen experts sum to route_scale
    route_scale: float = 1.0  # sum of the weights of the chosen experts
    swiglu_limit: float = 0.0  # clamp inside an expert; 0: none
    n_hash_layers: int = 0  # first layers whose experts come from a table (V4)
    # hyper-connections
    hc_mult: int = 4  # residual streams
    hc_sinkhorn_iters: int = 20  # row and column steps that make the mixing matrix doubly stochastic
    hc_eps: float = 1e-6  # added to its sums
    # Engram
    engram_layer_ids: tuple = ()  # layers with an n-gram memory
    engram_max_ngram_size: int = 4  # longest n-gram, in tokens
    engram_vocab_size: int = 0  # where the search for primes starts
    engram_n_heads: int = 0  # hashes per n-gram order
    engram_head_dim: int = 0  # width of a table row
    engram_pad_id: int = 2  # raw id that stands for "no token"
    engram_compressed_vocab_size: int = 0  # ids after normalising the tokens' text
    engram_num_embeddings: tuple = ()  # rows of each module's table; () to compute them
    # DSpark
    dspark_block_size: int = 0  # tokens drafted at once
    dspark_noise_token_id: int = 0  # stands in the rows of a block behind the first
    dspark_target_layer_ids: tuple = ()  # layers whose streams the drafter reads
    dspark_markov_rank: int = 0  # width of the low-rank bigram head
    dspark_n_routed_experts: int = 0  # experts of a draft stage
    dspark_n_activated_experts: int = 0  # chosen for a row of the block
    # images
    image_token_id: int = -1  # stands at every position of an image; −1: no images
    vision_n_layers: int = 0  # blocks of the tower; 0: no tower
    vision_dim: int = 0  # width of the tower
    vision_n_heads: int = 0  # its heads
    vision_inter_dim: int = 0  # width inside its feed-forward part
    vision_patch_size: int = 14  # pixels
    vision_rope_theta: float = 10_000.0  # base of its rotations by row and column
    vision_downsample_ratio: int = 3  # patches merged along each side
    vision_max_tokens: int = 1024  # tokens of one image, delimiters included
    vision_min_pixels: int = 295_936  # smaller images are scaled up

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))
        validate(self)

    # Presets

    @classmethod
    def v41_flash(cls):
        """The released DeepSeek-V4.1-Flash (reference `inference/config.json`, defaults of `ModelArgs`)."""
        return cls(**V41_FLASH)

    @classmethod
    def v4_flash_0731(cls):
        """DeepSeek-V4-Flash of 31 July (values quoted by third parties; V4 reference code)."""
        return cls(**V4_FLASH_0731)

    @classmethod
    def tiny(cls, **changes):
        """Every mechanism of V4.1 in eight layers of width 32: milliseconds per token in NumPy.

        Args:
            changes: fields to set otherwise.

        >>> ModelConfig.tiny().n_layers
        8
        """
        return replace(cls(**TINY), **changes)

    @classmethod
    def from_released(cls, released):
        """Read the content of a released configuration file.

        Args:
            released: dict with the names of `inference/config.json` (dim, n_layers, …) or of the Hugging Face
                `config.json` (hidden_size, num_hidden_layers, …; V4.1 nests them in text_config and vision_config).
                Names that say nothing about the forward pass are passed over.

        Raises:
            ConfigError: a needed name is missing, or a value does not fit.
        """
        values = read_released(released, {field.name for field in fields(cls)})
        try:
            return cls(**values)
        except TypeError as error:
            missing = [f.name for f in fields(cls) if f.name not in values and f.name in str(error)]
            raise ConfigError(
                f"a released configuration must name every size; missing: {', '.join(missing) or error}; "
                "compare with inference/config.json of the release"
            ) from None

    def to_dict(self):
        """All fields by name; `ModelConfig(**config.to_dict()) == config`."""
        return asdict(self)

    # What follows from the fields

    @property
    def decoder_start(self):
        """First decoder layer: the last layer that makes global entries (20 of V4.1); n_layers where there is none."""
        if self.generation == "v4":
            return self.n_layers
        return max(self.kv_source_layers, default=self.n_layers)

    @property
    def skips_decoder(self):
        """Whether a prefill can leave the decoder out for most tokens: there is one, and no pool reaches into it."""
        plans = self.schedule()[self.decoder_start : self.n_layers]
        own_pool = self.candidate_source_layer >= self.decoder_start or not any(plan.pool for plan in plans)
        return bool(plans) and own_pool

    def schedule(self):
        """The plan of every backbone layer and draft stage: tuple of n_layers + n_mtp_layers LayerPlan.

        >>> [plan.mode for plan in ModelConfig.tiny().schedule()[:7]]
        ['window', 'full', 'reuse', 'full', 'reuse', 'reindex', 'reuse']
        """
        return tuple(layer_plan(self, layer) for layer in range(self.n_layers + self.n_mtp_layers))

    def schedule_table(self):
        """The schedule as text, one line per run of equal layers."""
        rows, run = [("layers", "side", "ratio", "mode", "entries of", "choice of", "pool", "Engram")], []
        for plan in (*self.schedule(), None):
            if run and (plan is None or _look(plan) != _look(run[0])):
                span = str(run[0].index) if len(run) == 1 else f"{run[0].index}–{run[-1].index}"
                rows.append((span, *_look(run[0])))
                run = []
            run.append(plan)
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _look(plan):
    def known(value):
        return "–" if value in (None, "") else str(value)

    columns = (plan.owner, plan.chooser, plan.pool, plan.engram)
    return (plan.side, str(plan.ratio or "–"), plan.mode, *map(known, columns))


def layer_plan(config, layer):
    """The plan of one layer or draft stage.

    Args:
        config: ModelConfig.
        layer: 0 … n_layers + n_mtp_layers − 1; from n_layers on a draft stage.

    Returns:
        LayerPlan: side, ratio, mode, whose entries and whose choice it reads, its part in the candidate pool, Engram.

    Source: the released configuration's lists of layers; what each mode does is told in section 2.3.1 of the report.

    >>> plan = layer_plan(ModelConfig.v41_flash(), 24)
    >>> plan.mode, plan.owner, plan.chooser, plan.pool
    ('reindex', 20, 24, 'restricted')
    """
    if layer >= config.n_layers:
        return LayerPlan(layer, "draft", config.compress_ratios[layer], "window")
    ratio = config.compress_ratios[layer]
    engram = config.engram_layer_ids.index(layer) if layer in config.engram_layer_ids else None
    shared = {"engram": engram, "hash_routed": layer < config.n_hash_layers}
    side = "encoder" if layer < config.decoder_start else "decoder"
    if config.generation == "v4":
        side = "decoder"
    if not ratio:
        return LayerPlan(layer, side, 0, "window", **shared)
    owner = max(source for source in config.kv_source_layers if source <= layer)
    if config.generation == "v4":
        csa = ratio == 4
        return LayerPlan(layer, side, ratio, "csa" if csa else "hca", owner, layer if csa else None, **shared)
    chooser = max(source for source in config.index_source_layers if source <= layer)
    mode = "full" if layer == owner else "reindex" if layer == chooser else "reuse"
    source, pool = config.candidate_source_layer, ""
    if layer == source:
        pool = "source"
    elif 0 <= source < layer == chooser and ratio == config.compress_ratios[source]:
        pool = "restricted"
    return LayerPlan(layer, side, ratio, mode, owner, chooser, pool, **shared)
