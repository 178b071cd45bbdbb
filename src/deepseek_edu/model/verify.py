"""The PyTorch model as `deepseek_edu.verify` runs it: whole batches, in float64.

In float32 a value next to a rounding boundary of a quantised cache may fall to the other side than in the recorded run;
the recorded values were chosen so that exact arithmetic stays clear of the boundaries.

Source: our own.
"""

import torch

from deepseek_edu.model import dspark
from deepseek_edu.model.model import Model
from deepseek_edu.model.threads import limited


def _threads_for(config):
    """One thread for narrow models, whose products are so short that threads would mostly wait for each other."""
    return limited(1 if config.dim < 512 else None)


class TorchRunner:
    """Runs batches of equally long sequences; the methods are those of reference/verify.py.

    Args:
        config: ModelConfig; weights: {released name: array}; token_map: [V]; dtype: of everything.
    """

    def __init__(self, config, weights, token_map, dtype=torch.float64):
        self.model = Model(config, token_map, dtype).load_weights(weights)

    def prefill(self, ids, quantized, types=None):
        """Run whole prompts: ids [B T]; types [B T] or None. Returns what `NumpyRunner.prefill` does."""
        cache = self.model.new_cache(len(ids), quantized)
        with _threads_for(self.model.config):
            output = self.model.prefill(torch.as_tensor(ids), cache, types=types)
        hidden = output.main_hidden
        return {
            "logits": output.logits.numpy(),
            "main_hidden": None if hidden is None else hidden.numpy(),
            "hashes": None if output.hashes is None else output.hashes.numpy(),
            "choices": {layer: choice.numpy() for layer, choice in output.choices.items()},
        }

    @torch.no_grad()
    def decode(self, ids, start, quantized, stale_index_keys=False, draft_from=None):
        """Prefill ids[:, :start], then feed the others one at a time.

        Arguments and result as in `verify.NumpyRunner.decode`.
        """
        with _threads_for(self.model.config):
            found = self._decode(ids, start, quantized, stale_index_keys, draft_from)
        return {name: torch.stack(values, dim=1).numpy() for name, values in found.items() if values}

    def _decode(self, ids, start, quantized, stale_index_keys, draft_from):
        model, ids = self.model, torch.as_tensor(ids)
        cache = model.new_cache(len(ids), quantized)
        if start:
            model.prefill(ids[:, :start], cache)
        found = {"logits": [], "ids": [], "draft_logits": [], "conf": []}
        for step in range(start, ids.shape[1]):
            found["logits"].append(model.decode(ids[:, step], cache, stale_index_keys=stale_index_keys).last)
            if draft_from is not None and step - start < draft_from.shape[1]:
                draft = dspark.draft(torch.as_tensor(draft_from[:, step - start]), model, cache)
                found["ids"].append(draft.ids)
                found["draft_logits"].append(draft.logits)
                found["conf"].append(draft.confidence)
        return found
