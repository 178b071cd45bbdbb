"""Reading a released checkpoint: safetensors shards with an index, quantised matrices with their scales.

A shard begins with eight bytes (length of the header, little endian) and the header, JSON with type, shape and place of
every tensor; the numbers follow. A matrix `x.weight` of type F8_E4M3, or I8 for two FP4 codes in a byte, comes with
`x.scale` of type F8_E8M0 (linear.py). Everything else is F32, BF16 or F16.

Headers are read first and compared with the configuration; only then are tensors read, one after the other, some rows
at a time. Memory: the result, and at most 100 MB for the stored bytes and float32 copies of 2 million numbers (rows are
not cut, nor blocks with one scale). The largest table of the release, 98 billion numbers, needs no more.

Source: safetensors format; layout of the DeepSeek-V4.1-Flash release.
"""

import json
import math
from pathlib import Path

import numpy as np

from deepseek_edu.reference import linear, quant
from deepseek_edu.reference import weights as names

PLAIN = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "u1", "I8": "i1"}
"""Types of safetensors that NumPy has, by its names."""
ONE_BYTE = {"F8_E4M3", "F8_E8M0", "I8", "U8", "BOOL"}
"""Types whose bytes are codes, or read alike with and without a sign."""
PIECE = 1 << 21
"""Numbers that are read at a time."""


def _weight_map(index):
    """{tensor: shard} of an index file."""
    try:
        content = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if not all(isinstance(file, str) and file for file in content.values()):
            raise ValueError("a shard has no name")
        return dict(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{index} is damaged: it holds no weight_map of tensors to shards ({error!r})") from None


def _place(entry):
    """(type, shape, first byte, last byte) of a header's entry."""
    dtype, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if type(dtype) is not str or any(type(number) is not int for number in (*shape, first, last)):
        raise TypeError(f"dtype must be a text, shape and data_offsets integers; got {entry}")
    return dtype, shape, first, last


class Checkpoint:
    """The tensors of a folder, known by their headers and read on demand.

    Args:
        folder: path with `model.safetensors.index.json` and its shards, or with *.safetensors files.

    Raises:
        ValueError: no shard, a shard that the index names is missing, or a file is damaged or of another kind.
    """

    def __init__(self, folder):
        folder = Path(folder)
        index = folder / "model.safetensors.index.json"
        if index.exists():
            self.indexed = _weight_map(index)
            files = sorted({folder / name for name in self.indexed.values()})
        else:
            self.indexed, files = None, sorted(folder.glob("*.safetensors"))
        absent = [file.name for file in files if not file.is_file()]
        if absent or not files:
            raise ValueError(f"{folder} must hold safetensors shards; missing: {', '.join(absent) or 'all'}")
        self.tensors = {}  # name -> (file, type, shape, first byte, bytes)
        for file in files:
            self._read_header(file)

    def _read_header(self, file):
        size = file.stat().st_size
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= size - 8:
                raise ValueError(f"{file} is no complete safetensors file: its header would be {length} bytes long")
            content = stream.read(length)
        try:
            header = {name: entry for name, entry in json.loads(content).items() if name != "__metadata__"}
            places = {name: _place(entry) for name, entry in header.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{file} is damaged: its header does not describe tensors ({error!r})") from None
        for name, (dtype, shape, first, last) in places.items():
            if 8 + length + last > size:
                raise ValueError(f"{file} is truncated: {name} ends at byte {8 + length + last} of {size}")
            wide = 1 if dtype in ONE_BYTE else 2 if dtype == "BF16" else np.dtype(PLAIN.get(dtype, "u1")).itemsize
            fits = last - first == math.prod(shape) * wide or dtype not in (*PLAIN, *ONE_BYTE, "BF16")
            if not (fits and 0 <= first <= last and min(shape, default=0) >= 0):
                raise ValueError(f"{file} is damaged: {name} of shape {list(shape)} has bytes {first} … {last}")
            if name in self.tensors:
                raise ValueError(f"{name} must be in one shard; it is in {self.tensors[name][0].name} and {file.name}")
            self.tensors[name] = (file, dtype, shape, 8 + length + first, last - first)
        end = 0
        for first, last, name in sorted((first, last, name) for name, (_, _, first, last) in places.items()):
            if first != end:
                raise ValueError(f"{file} is damaged: {name} begins at byte {first}; those before it end at {end}")
            end = last
        if 8 + length + end != size:
            raise ValueError(f"{file} is damaged: {size - 8 - length - end} bytes follow the last tensor")

    def raw(self, name, rows=None):
        """Return the stored numbers: uint8 for one-byte formats, float32 for BF16, else the type of the file.

        Args:
            name: of a tensor in the folder.
            rows: (first, last) of the first dimension, last not included; None for all.

        Raises:
            ValueError: it has a type that this program does not read.
        """
        file, dtype, shape, first, count = self.tensors[name]
        if rows is not None:
            row = count // max(shape[0], 1)  # bytes
            first, count, shape = first + rows[0] * row, (rows[1] - rows[0]) * row, (rows[1] - rows[0], *shape[1:])
        with file.open("rb") as stream:
            stream.seek(first)
            content = stream.read(count)
        if dtype in ONE_BYTE:
            return np.frombuffer(content, np.uint8).reshape(shape)
        if dtype == "BF16":
            return (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
        if dtype not in PLAIN:
            raise ValueError(
                f"{name} has the type {dtype}; this program reads {', '.join([*PLAIN, 'BF16', *ONE_BYTE])}"
            )
        return np.frombuffer(content, PLAIN[dtype]).reshape(shape)

    def logical_shape(self, name):
        """Return the shape of the matrix a tensor stands for: an FP4 matrix has twice the stored columns."""
        _, dtype, shape, _, _ = self.tensors[name]
        if dtype in ("I8", "U8") and self.scale_of(name):
            return (*shape[:-1], 2 * shape[-1])
        return shape

    def scale_of(self, name):
        """Return the name of the tensor's scales, or None if it has none."""
        scale = f"{name.removesuffix('weight')}scale"
        return scale if name.endswith(".weight") and scale in self.tensors else None

    def lacks_scale(self, name):
        """Return whether the tensor of this name holds codes that mean nothing without scales, and has none."""
        dtype = self.tensors[name][1] if name in self.tensors else ""
        return dtype in ("F8_E4M3", "I8", "U8") and name.endswith(".weight") and self.scale_of(name) is None

    def misfit(self, name):
        """Return why the stored form of the tensor of this name cannot be read, or an empty text."""
        dtype, shape, scale = *self.tensors[name][1:3], self.scale_of(name)
        if dtype not in (*PLAIN, *ONE_BYTE, "BF16"):
            return f"{name} of type {dtype}"
        if not scale or dtype not in ("F8_E4M3", "I8", "U8"):
            return ""
        found, kind = self.tensors[scale][2], self.tensors[scale][1]
        if kind not in ("F8_E8M0", "U8"):
            return f"{scale} of type {kind} (expected F8_E8M0)"
        rows, columns = shape if len(shape) == 2 else (0, 0)
        table = name.endswith("engram.embed.weight")
        if dtype == "F8_E4M3" and not table:
            try:
                linear.block_size(shape, found)
            except ValueError as error:
                return f"{scale} ({error})"
        elif found != (rows, 2 * columns // 32 if dtype != "F8_E4M3" else -(-columns // 32)):
            return f"{scale} {found} (for {name} {shape})"
        return ""

    def pieces(self, name, keep_scale=False):
        """Yield a tensor as numbers, some rows at a time: (first row, numbers of these rows), float32 if quantised.

        Args:
            name: of a tensor in the folder, with one dimension or more.
            keep_scale: the scales are a parameter of their own (Engram tables); do not multiply by them.
        """
        dtype, shape = self.tensors[name][1:3]
        scale, block = self.scale_of(name), 1
        if dtype == "F8_E4M3" and scale and not keep_scale:
            block = linear.block_size(shape, self.tensors[scale][2])
        step = max(1, PIECE // max(1, math.prod(shape[1:])) // block) * block
        for first in range(0, shape[0], step):
            rows = first, min(first + step, shape[0])
            stored = self.raw(name, rows)
            if dtype == "F8_E8M0":
                stored = quant.decode_e8m0(stored)
            elif dtype in ("I8", "U8") and scale:
                stored = linear.dequantize_fp4_weight(stored, self.raw(scale, rows))
            elif dtype == "F8_E4M3" and scale and not keep_scale:
                scales = self.raw(scale, (first // block, -(-rows[1] // block)))
                stored = linear.dequantize_fp8_weight(stored, scales, block)
            elif dtype == "F8_E4M3":
                stored = quant.decode_e4m3(stored)
            yield first, stored

    def read(self, name, dtype=np.float32, keep_scale=False):
        """Return a whole tensor as numbers of a NumPy type.

        Args:
            name, keep_scale: as for `pieces`.
            dtype: of the result.
        """
        whole = np.empty(self.logical_shape(name), dtype)
        for first, some in self.pieces(name, keep_scale):
            whole[first : first + len(some)] = some
        return whole


def check_checkpoint(checkpoint, shapes, optional=("vision.", "aligner.", "image_")):
    """Compare a checkpoint's headers with the shapes a configuration needs.

    Args:
        checkpoint: Checkpoint.
        shapes: {name: shape}, from `weights.weight_shapes`.
        optional: beginnings of names that may be missing.

    Raises:
        ValueError: lists missing, unknown and misshapen tensors, those the index puts elsewhere, and those whose type
            or scales cannot be read, in one message.
    """
    scales = {checkpoint.scale_of(name) for name in checkpoint.tensors}
    missing = [name for name in shapes if name not in checkpoint.tensors and not name.startswith(tuple(optional))]
    unscaled = [f"{name.removesuffix('weight')}scale" for name in shapes if checkpoint.lacks_scale(name)]
    missing += [scale for scale in unscaled if scale not in shapes]
    unknown = [name for name in checkpoint.tensors if name not in shapes and name not in scales]
    wrong = [
        f"{name} {checkpoint.logical_shape(name)} (expected {shape})"
        for name, shape in shapes.items()
        if name in checkpoint.tensors and checkpoint.logical_shape(name) != tuple(shape)
    ]
    indexed = checkpoint.indexed or {}
    astray = [name for name, file in indexed.items() if checkpoint.tensors.get(name, (Path(),))[0].name != file]
    misfits = [why for name in shapes if name in checkpoint.tensors and (why := checkpoint.misfit(name))]
    problems = [("missing", missing), ("unknown", unknown), ("of another shape", wrong), ("not in their shard", astray)]
    problems.append(("not readable", misfits))
    found = [f"{len(some)} {what}: {', '.join(some[:12])}{' …' * (len(some) > 12)}" for what, some in problems if some]
    if found:
        raise ValueError(f"the checkpoint does not belong to this configuration; {'; '.join(found)}")


def load_checkpoint(folder, config, dtype=np.float64, only=""):
    """Read the weights of a V4.1 model.

    Args:
        folder: checkpoint.
        config: ModelConfig; every tensor is checked against it before one is read.
        dtype: NumPy type of the result.
        only: read names with this beginning only, such as "layers.3."; the check is for all.

    Returns:
        {released name: array}, for `model.Model`.

    Raises:
        ValueError: see Checkpoint and check_checkpoint.
    """
    checkpoint, shapes = Checkpoint(folder), names.weight_shapes(config)
    check_checkpoint(checkpoint, shapes)
    wanted = [name for name in shapes if name in checkpoint.tensors and name.startswith(only)]
    return {name: checkpoint.read(name, dtype, keep_scale=checkpoint.scale_of(name) in shapes) for name in wanted}
