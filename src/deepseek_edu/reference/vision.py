"""Images: a vision transformer over patches, an aligner to the model's width, and the span of tokens an image becomes.

Patches of 14 × 14 pixels pass through pre-norm layers that see the whole image; a patch's row and column are rotary
positions, half of a head's pairs for each. The aligner merges 3 × 3 patches into one token. In the sequence an image is

    START, then for every row of the merged grid its tokens and a NEWLINE, then END

with one token id for all of them; START, NEWLINE and END are learned vectors. Inside the model these tokens attend
causally like text, use the router's image bias and have no n-gram memory.

Source: report, section 2.1.1; reference `vision.py` and `image_processor.py`. Left out: decoding and resampling pixels.
"""

import math

import numpy as np

from deepseek_edu.reference import activations, norms

TEXT, IMAGE_START, IMAGE, IMAGE_NEWLINE, IMAGE_END = -1, 0, 1, 2, 3
NORM_EPS = 1e-6  # of the RMSNorms of the tower


def image_types(rows, columns):
    """Return the token types of an image: int64 [rows · (columns + 1) + 2].

    >>> image_types(1, 2).tolist()
    [0, 1, 1, 2, 3]
    """
    return np.array([IMAGE_START, *([IMAGE] * columns + [IMAGE_NEWLINE]) * rows, IMAGE_END])


def plan_grid(width, height, config):
    """Return the size an image is scaled to and the grid of tokens it becomes.

    Args:
        width, height: pixels, positive.
        config: for vision_patch_size, vision_downsample_ratio, vision_min_pixels, vision_max_tokens.

    Returns:
        (token rows, token columns, pixel height, pixel width); the pixel sizes are multiples of the patch.

    Raises:
        ValueError: a size is not positive.

    >>> from deepseek_edu.config import ModelConfig
    >>> plan_grid(4000, 4000, ModelConfig.v41_flash())  # the largest square: 31 · 32 + 2 = 994 tokens
    (31, 31, 1302, 1302)
    """
    if not (1 <= width < math.inf and 1 <= height < math.inf):
        raise ValueError(f"width and height must be 1 or more pixels; got {width} × {height}")
    patch = config.vision_patch_size
    if width * height < config.vision_min_pixels:
        scale = math.sqrt(config.vision_min_pixels / (width * height))
        width, height = int(width * scale), int(height * scale)
    best_height, best_width = (math.ceil(size / patch) * patch for size in (height, width))
    rows, columns = _token_grid(best_height, best_width, config)
    if rows * (columns + 1) + 2 > config.vision_max_tokens:
        best_height, best_width = _fitting_size(height, width, config)
        rows, columns = _token_grid(best_height, best_width, config)
    return rows, columns, best_height, best_width


def _token_grid(height, width, config):
    cell = config.vision_downsample_ratio
    return tuple(math.ceil(size // config.vision_patch_size / cell) for size in (height, width))


def _fitting_size(height, width, config):
    """The largest size with about the same proportions whose tokens fit: r·w·(w + 1) + 2 = budget, solved for w."""
    patch, budget = config.vision_patch_size, config.vision_max_tokens
    cell, proportion = patch * config.vision_downsample_ratio, height / width
    columns = math.sqrt((budget - 2) / proportion + 0.25) - 0.5
    rows = columns * proportion
    if columns < 1:
        return (budget - 2) // 2 * cell, cell
    if rows < 1:
        return cell, (budget - 3) * cell
    scale = min(math.floor(columns) * cell / width, math.floor(rows) * cell / height)
    return tuple(max(1, math.floor(size * scale / patch)) * patch for size in (height, width))


def patches_of(pixels, config):
    """Cut an image into patches.

    Args:
        pixels: [height width 3], values 0 … 1; both sizes multiples of the patch.

    Returns:
        ([rows·columns 3·patch²], rows, columns), row by row; a patch is stored colour by colour; values −1 … 1.

    Raises:
        ValueError: pixels has another shape or other values.
    """
    patch = config.vision_patch_size
    shape = np.shape(pixels)
    if len(shape) != 3 or shape[0] % patch or shape[1] % patch or shape[2] != 3:
        raise ValueError(f"pixels must be [height width 3] in multiples of {patch}; got {shape}; scale it first")
    pixels = np.asarray(pixels)
    if not np.all((pixels >= 0) & (pixels <= 1)):
        raise ValueError(f"pixels must be 0 … 1; got {pixels.min()} … {pixels.max()}; divide values of 8 bits by 255")
    height, width, _ = shape
    rows, columns = height // patch, width // patch
    x = (pixels - 0.5) / 0.5
    x = x.reshape(rows, patch, columns, patch, 3).transpose(0, 2, 4, 1, 3)  # rows columns 3 patch patch
    return x.reshape(rows * columns, -1), rows, columns


def rotate_2d(x, rows, columns, theta):
    """Turn queries or keys of patches by row and column.

    Args:
        rows, columns: of the grid of patches.
        x: [rows·columns H D]; channel i pairs with i + D/2. The first quarter of the pairs turns by the row, the second
            by the column.
        theta: base; the frequencies are theta^(−2i/(D/2)).

    Returns:
        [rows·columns H D].
    """
    half = x.shape[-1] // 2
    frequencies = theta ** (-np.arange(0, half, 2) / half)  # D/4
    row, column = np.divmod(np.arange(rows * columns), columns)
    angles = np.concatenate([row[:, None] * frequencies, column[:, None] * frequencies], axis=-1)[:, None]  # N 1 D/2
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def vision_tower(patches, rows, columns, w, config):
    """Return the features of the patches.

    Args:
        patches: [N 3·patch²], from `patches_of`, N = rows · columns.
        rows, columns: of the grid of patches.
        w: weights by released name ("vision.…").

    Returns:
        [N V].
    """
    heads, width = config.vision_n_heads, config.vision_dim
    x = patches @ w["vision.patch_embed.proj.weight"].T + w["vision.patch_embed.proj.bias"]  # N V
    for layer in range(config.vision_n_layers):
        prefix = f"vision.blocks.{layer}."
        u = norms.rms_norm(x, w[f"{prefix}norm1.weight"], NORM_EPS)
        qkv = u @ w[f"{prefix}attn.wqkv.weight"].T + w[f"{prefix}attn.wqkv.bias"]  # N 3V
        q, k, v = (part.reshape(len(x), heads, -1) for part in np.split(qkv, 3, axis=-1))  # N H D
        q, k = (rotate_2d(part, rows, columns, config.vision_rope_theta) for part in (q, k))
        scores = np.einsum("nhd,mhd->hnm", q, k, optimize=True) * (width // heads) ** -0.5  # H N N
        o = np.einsum("hnm,mhd->nhd", activations.softmax(scores), v, optimize=True).reshape(len(x), -1)
        x = x + o @ w[f"{prefix}attn.wo.weight"].T + w[f"{prefix}attn.wo.bias"]
        u = norms.rms_norm(x, w[f"{prefix}norm2.weight"], NORM_EPS)
        gate, up = np.split(u @ w[f"{prefix}mlp.w1.weight"].T, 2, axis=-1)  # N F
        x = x + (activations.silu(gate) * up) @ w[f"{prefix}mlp.w2.weight"].T
    return norms.rms_norm(x, w["vision.norm.weight"], NORM_EPS)


def align(features, rows, columns, w, config):
    """Merge neighbouring patches to tokens of the model's width.

    Args:
        features: [rows·columns V].
        rows, columns: of the grid of patches.
        w: weights by released name ("aligner.…").

    Returns:
        [⌈rows/3⌉·⌈columns/3⌉ C]; the grid is filled up with zeros to the right and below; within a cell the channels
        are the slow index.
    """
    ratio = config.vision_downsample_ratio
    grid = features.reshape(rows, columns, -1)
    grid = np.pad(grid, ((0, -rows % ratio), (0, -columns % ratio), (0, 0)))
    cells = grid.reshape(grid.shape[0] // ratio, ratio, grid.shape[1] // ratio, ratio, -1)
    cells = cells.transpose(0, 2, 4, 1, 3).reshape(-1, features.shape[-1] * ratio**2)  # tokens V·ratio²
    hidden = activations.gelu(cells @ w["aligner.w1.weight"].T + w["aligner.w1.bias"])
    return hidden @ w["aligner.w2.weight"].T + w["aligner.w2.bias"]


def image_span(patches, rows, columns, w, config):
    """Return what an image puts into the sequence.

    Args:
        patches: [rows·columns 3·patch²], from `patches_of`.
        rows, columns: of the grid of patches.
        w: weights by released name.

    Returns:
        (types [n], features [n C]): pass them, with n times image_token_id, to `Model.prefill`.
    """
    ratio = config.vision_downsample_ratio
    tokens = align(vision_tower(patches, rows, columns, w, config), rows, columns, w, config)
    types = image_types(-(-rows // ratio), -(-columns // ratio))
    features = np.empty((len(types), config.dim))
    features[types == IMAGE] = tokens
    for kind, name in ((IMAGE_START, "start"), (IMAGE_NEWLINE, "newline"), (IMAGE_END, "end")):
        features[types == kind] = w[f"image_{name}"]
    return types, features
