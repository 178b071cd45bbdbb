"""The NumPy model as `deepseek_edu.verify` runs it: a batch is a loop, in float64.

The recorded values come from float32. Exact arithmetic is the better partner for them: with a second float32 run, its
own rounding would come on top, and near a rounding boundary of a quantised cache either side could fall away.

Source: our own.
"""

import numpy as np

from deepseek_edu.reference import dspark, model


class NumpyRunner:
    """Runs batches of equally long sequences.

    Another implementation takes part by offering the same constructor and methods.

    Args:
        config: ModelConfig; weights: {released name: array}; token_map: [V].
    """

    def __init__(self, config, weights, token_map):
        self.model = model.Model(config, weights, token_map)

    def prefill(self, ids, quantized, types=None):
        """Run whole prompts.

        Args:
            ids: int64 [B T]; types: [B T] or None; quantized: with the cache formats or without.

        Returns:
            dict: logits [B T V], main_hidden [B T M], hashes [B T modules rows] or None, choices {layer: [B T K]}.
        """
        outputs = [
            self.model.prefill(row, self.model.new_cache(quantized), None if types is None else types[b])
            for b, row in enumerate(ids)
        ]
        first = outputs[0]
        return {
            "logits": np.stack([o.logits for o in outputs]),
            "main_hidden": np.stack([o.main_hidden for o in outputs]),
            "hashes": None if first.hashes is None else np.stack([o.hashes for o in outputs]),
            "choices": {layer: np.stack([o.choices[layer] for o in outputs]) for layer in first.choices},
        }

    def decode(self, ids, start, quantized, stale_index_keys=False, draft_from=None):
        """Prefill ids[:, :start], then feed the others one at a time.

        Args:
            ids: int64 [B start+R], R 1 or more.
            start: tokens of the prefill, 0 or more.
            stale_index_keys: reproduce the released decode's defect (csa2.py).
            draft_from: int64 [B R'], the token given to the drafter after each of the first R' ≤ R steps, or None.

        Returns:
            {"logits": [B R V]}; with drafts also "ids" [B R' 1+block], "draft_logits" [B R' block V],
            "conf" [B R' block].
        """
        found = {"logits": [], "ids": [], "draft_logits": [], "conf": []}
        for b, row in enumerate(ids):
            given = () if draft_from is None else draft_from[b]
            for name, values in self._decode(row, start, quantized, stale_index_keys, given).items():
                found[name].append(values)
        return {name: np.array(values) for name, values in found.items() if draft_from is not None or name == "logits"}

    def _decode(self, row, start, quantized, stale_index_keys, given):
        cache = self.model.new_cache(quantized)
        if start:
            self.model.prefill(row[:start], cache)
        steps = {"logits": [], "ids": [], "draft_logits": [], "conf": []}
        for step, token in enumerate(row[start:]):
            output = self.model.decode(token, cache, stale_index_keys=stale_index_keys)
            steps["logits"].append(output.logits[-1])
            if step < len(given):
                draft = dspark.draft(given[step], cache.length, self.model, cache)
                steps["ids"].append(draft.ids)
                steps["draft_logits"].append(draft.logits)
                steps["conf"].append(draft.confidence)
        return steps
