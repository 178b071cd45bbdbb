"""Loading a released checkpoint into the PyTorch model, one tensor at a time.

The files are read by reference/checkpoint.py: headers first, all checks together, then tensor by tensor, some rows at a
time; FP8 and FP4 matrices become numbers of the model's type. Memory: the model, and about 100 MB.

Source: safetensors format; layout of the DeepSeek-V4.1-Flash release.
"""

import torch

from deepseek_edu.model.model import Model
from deepseek_edu.reference import weights as names
from deepseek_edu.reference.checkpoint import Checkpoint, check_checkpoint


@torch.no_grad()
def load_checkpoint(folder, config, token_map=None, dtype=torch.bfloat16, device="cpu", round_inputs=False):
    """Return a Model with the weights of a folder.

    Args:
        folder: with safetensors shards and their index.
        config: ModelConfig; every tensor is checked against it before one is read.
        token_map, dtype, device, round_inputs: of the model.

    Raises:
        ValueError: lists missing, unknown and misshapen tensors together; or what `Model` refuses.
    """
    checkpoint, shapes = Checkpoint(folder), names.weight_shapes(config)
    check_checkpoint(checkpoint, shapes)
    model = Model(config, token_map, dtype, device, round_inputs)
    for name, parameter in model.state_dict().items():
        if name in checkpoint.tensors:
            for first, values in checkpoint.pieces(name, keep_scale=checkpoint.scale_of(name) in shapes):
                parameter[first : first + len(values)].copy_(torch.tensor(values))
    return model
