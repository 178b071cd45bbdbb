"""Images: a vision transformer over patches, an aligner to the model's width, the span of tokens an image becomes.

The whole image sees itself; a patch's row and column are rotary positions, half of a head's pairs for each. Cutting an
image into patches and planning its grid is done by reference/vision.py (`patches_of`, `plan_grid`, `image_types`).

Source: report, section 2.1.1; reference `vision.py`. One image at a time.
"""

import torch
from torch import nn

from deepseek_edu.model.norms import RMSNorm
from deepseek_edu.reference.vision import IMAGE, IMAGE_END, IMAGE_NEWLINE, IMAGE_START, NORM_EPS, image_types


def rotate_2d(x, rows, columns, theta):
    """Turn queries or keys of patches by row and column.

    Args:
        rows, columns: of the grid of patches.
        x: [rows·columns H D]; channel i pairs with i + D/2. The first quarter of the pairs turns by the row, the second
            by the column.
        theta: base of the frequencies.

    Returns:
        [rows·columns H D].
    """
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(0, half, 2, device=x.device, dtype=torch.float64) / half)  # D/4
    numbers = torch.arange(rows * columns, device=x.device)
    row, column = numbers // columns, numbers % columns
    angles = torch.cat([row[:, None] * frequencies, column[:, None] * frequencies], dim=-1)[:, None]  # N 1 D/2
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class VisionAttention(nn.Module):
    """Every patch sees every patch."""

    def __init__(self, config, where):
        super().__init__()
        self.heads, self.theta = config.vision_n_heads, config.vision_rope_theta
        self.wqkv = nn.Linear(config.vision_dim, 3 * config.vision_dim, **where)
        self.wo = nn.Linear(config.vision_dim, config.vision_dim, **where)

    def forward(self, u, rows, columns):
        """Return [N V] from [N V]."""
        q, k, v = self.wqkv(u).unflatten(-1, (3, self.heads, -1)).unbind(dim=1)  # N H D each
        q, k = (rotate_2d(part, rows, columns, self.theta) for part in (q, k))
        heads = nn.functional.scaled_dot_product_attention(*(part.transpose(0, 1) for part in (q, k, v)))  # H N D
        return self.wo(heads.transpose(0, 1).flatten(1))


class VisionMLP(nn.Module):
    """SwiGLU without clamps: w1 holds the gate's rows, then those of the other branch."""

    def __init__(self, config, where):
        super().__init__()
        self.w1 = nn.Linear(config.vision_dim, 2 * config.vision_inter_dim, bias=False, **where)
        self.w2 = nn.Linear(config.vision_inter_dim, config.vision_dim, bias=False, **where)

    def forward(self, u):
        """Return (…, V)."""
        gate, up = self.w1(u).chunk(2, dim=-1)
        return self.w2(nn.functional.silu(gate) * up)


class VisionBlock(nn.Module):
    """One pre-norm layer."""

    def __init__(self, config, where):
        super().__init__()
        self.norm1 = RMSNorm(config.vision_dim, NORM_EPS, where)
        self.norm2 = RMSNorm(config.vision_dim, NORM_EPS, where)
        self.attn, self.mlp = VisionAttention(config, where), VisionMLP(config, where)

    def forward(self, x, rows, columns):
        """Return [N V]."""
        x = x + self.attn(self.norm1(x), rows, columns)
        return x + self.mlp(self.norm2(x))


class PatchEmbedding(nn.Module):
    """Patches to vectors, with a bias."""

    def __init__(self, config, where):
        super().__init__()
        self.proj = nn.Linear(3 * config.vision_patch_size**2, config.vision_dim, **where)


class VisionTower(nn.Module):
    """Features of patches: [N V] from [N 3·patch²]."""

    def __init__(self, config, where):
        super().__init__()
        self.patch_embed = PatchEmbedding(config, where)
        self.blocks = nn.ModuleList(VisionBlock(config, where) for _ in range(config.vision_n_layers))
        self.norm = RMSNorm(config.vision_dim, NORM_EPS, where)

    def forward(self, patches, rows, columns):
        """Return [rows·columns V]."""
        x = self.patch_embed.proj(patches)
        for block in self.blocks:
            x = block(x, rows, columns)
        return self.norm(x)


class Aligner(nn.Module):
    """Neighbouring patches, ratio × ratio, to one token of the model's width."""

    def __init__(self, config, where):
        super().__init__()
        self.ratio = config.vision_downsample_ratio
        self.w1 = nn.Linear(config.vision_dim * self.ratio**2, config.dim, **where)
        self.w2 = nn.Linear(config.dim, config.dim, **where)

    def forward(self, features, rows, columns):
        """Return [⌈rows/ratio⌉·⌈columns/ratio⌉ C]; the grid is filled up with zeros to the right and below."""
        ratio = self.ratio
        grid = nn.functional.pad(features.view(rows, columns, -1), (0, 0, 0, -columns % ratio, 0, -rows % ratio))
        cells = grid.unflatten(1, (-1, ratio)).unflatten(0, (-1, ratio))  # rows ratio columns ratio V
        cells = cells.permute(0, 2, 4, 1, 3).flatten(2).flatten(0, 1)  # tokens V·ratio², channels slow
        return self.w2(nn.functional.gelu(self.w1(cells)))


def image_span(model, patches, rows, columns):
    """Return what an image puts into the sequence.

    Args:
        model: model.Model with a vision tower.
        patches: [rows·columns 3·patch²].
        rows, columns: of the grid of patches.

    Returns:
        (types int64 [n], features [n C]): pass them, with n times image_token_id, to `Model.prefill`.

    Raises:
        ValueError: the model has no vision tower, or the patches do not fill the grid.
    """
    if not model.config.vision_n_layers:
        raise ValueError("the model has no vision tower (config.vision_n_layers is 0)")
    patches = torch.as_tensor(patches, dtype=model.dtype, device=model.device)
    if len(patches) != rows * columns:
        raise ValueError(f"patches must be {rows} × {columns} = {rows * columns}; got {len(patches)}")
    tokens = model.aligner(model.vision(patches, rows, columns), rows, columns)
    ratio = model.config.vision_downsample_ratio
    types = torch.tensor(image_types(-(-rows // ratio), -(-columns // ratio)), device=model.device)
    features = tokens.new_zeros(len(types), model.config.dim).index_put(((types == IMAGE).nonzero()[:, 0],), tokens)
    delimiters = {IMAGE_START: model.image_start, IMAGE_NEWLINE: model.image_newline, IMAGE_END: model.image_end}
    for kind, vector in delimiters.items():
        features = torch.where((types == kind)[:, None], vector, features)
    return types, features
