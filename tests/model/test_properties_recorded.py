"""Short runs of the recorded model, one for each way through it; test_recorded.py runs all of the record.

The record was made in float32; float64 differs from it by 1e-5 in a prefill and by 5e-5 after some decode steps.
"""

import numpy as np
import torch

from deepseek_edu.model import dspark

from .tiny import gap, recorded, tiny_model


def prefill(tokens, kind="noquant", **options):
    """Output of the first tokens of both recorded prompts."""
    model = tiny_model()
    ids = torch.tensor(recorded()["ids"][:, :tokens])
    return model.prefill(ids, model.new_cache(2, quantized=kind == "quant"), **options)


def test_a_short_prefill_gives_the_recorded_logits():
    assert gap(prefill(9).logits, recorded()["noquant/prefill9/logits"]) < 5e-5


def test_a_long_prefill_gives_the_recorded_logits():
    """40 tokens: windows move, groups fill, the candidate pool (12 entries) leaves entries out."""
    assert gap(prefill(40).logits, recorded()["noquant/prefill40/logits"]) < 5e-5


def test_a_long_quantised_prefill_gives_the_recorded_logits():
    assert gap(prefill(40, "quant").logits, recorded()["quant/prefill40/logits"]) < 5e-5


def test_a_prefill_in_chunks_gives_the_recorded_logits():
    """Chunks of seven and a last one of five end inside windows and inside groups."""
    assert gap(prefill(40, chunk=7).logits, recorded()["noquant/prefill40/logits"]) < 5e-5


def test_the_reindexing_layer_chooses_the_recorded_entries():
    """The record counts behind the 40 window rows that stand before the entries in the reference's key list."""
    choices = prefill(40).choices[5].numpy()
    np.testing.assert_array_equal(np.where(choices < 0, -1, choices + 40), recorded()["noquant/topk_idxs_L5"])


def test_the_drafter_reads_the_recorded_streams():
    assert gap(prefill(24).main_hidden, recorded()["noquant/prefill24/main_hidden"]) < 5e-5


def test_a_prompt_with_an_image_span_gives_the_recorded_logits_and_hashes():
    model, data = tiny_model(), recorded()
    ids, types = (torch.tensor(data[f"noquant/image20/{name}"]) for name in ("ids", "types"))
    output = model.prefill(ids, model.new_cache(2, quantized=False), types=types)
    assert gap(output.logits, data["noquant/image20/logits"]) < 5e-5
    np.testing.assert_array_equal(output.hashes, data["engram_hashes_image20"])


def decoded(kind="noquant", steps=4, stale=False, drafts=False):
    """Decode recorded tokens one by one after 24; compare logits, and the drafts after each step."""
    model, data = tiny_model(), recorded()
    cache = model.new_cache(2, quantized=kind == "quant")
    model.prefill(torch.tensor(data["ids"][:, :24]), cache)
    name = "decode_stale_index_k" if stale else "decode"
    for step in range(steps):
        output = model.decode(torch.tensor(data["ids"][:, 24 + step]), cache, stale_index_keys=stale)
        assert gap(output.logits[:, 0], data[f"{kind}/{name}/logits"][:, step]) < 1e-4
        if drafts:
            with torch.no_grad():
                draft = dspark.draft(torch.tensor(data[f"{kind}/draft/ids"][:, step, 0]), model, cache)
            np.testing.assert_array_equal(draft.ids, data[f"{kind}/draft/ids"][:, step])
            assert gap(draft.logits, data[f"{kind}/draft/logits"][:, step]) < 1e-4
            assert gap(draft.confidence, data[f"{kind}/draft/conf"][:, step]) < 1e-4


def test_a_few_decode_steps_are_the_recorded_ones():
    decoded()


def test_a_few_quantised_decode_steps_are_the_recorded_ones():
    decoded("quant")


def test_a_few_decode_steps_with_stale_index_keys_are_the_recorded_defect():
    decoded(stale=True)


def test_a_few_drafts_are_the_recorded_ones():
    decoded(steps=2, drafts=True)
