"""What is stored is packed; the released widths cost the released bytes."""

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.model import Model
from deepseek_edu.reference.weights import weight_shapes

from ..reference.tiny import tiny_model as numpy_tiny_model
from .tiny import rows, tiny_model


def test_global_memory_costs_890_bytes_a_token_at_the_released_widths():
    """Counted from the arrays themselves: packed codes and scale bytes, and the numbers that nbytes reports."""
    config, tokens = ModelConfig.v41_flash(), 256
    cache = Cache(config)
    assert cache.nbytes["windows"] == 2_703_360
    assert cache.nbytes["draft_windows"] == 202_752
    for layer in cache.entries:
        count = torch.tensor([tokens // config.compress_ratios[layer]])
        for store, width in ((cache.entries[layer], 512), (cache.index_keys[layer], 128)):
            store.write(torch.randn(1, int(count), width), torch.zeros(1, dtype=torch.int64), count)
    arrays = [p for kind in (cache.entries, cache.index_keys) for store in kind.values() for p in store.stored(0)]
    assert sum(array.numel() * array.element_size() for array in arrays) == 890 * tokens
    assert cache.nbytes["persistent"] == 890 * tokens


def test_the_bytes_of_a_filled_cache_are_those_of_the_reference():
    """The same prompt leaves the same packed bytes in both implementations."""
    model, ids = tiny_model(), rows(23)[0]
    cache = model.new_cache()
    model.prefill([ids], cache)
    numpy_model = numpy_tiny_model()
    other = numpy_model.new_cache()
    numpy_model.prefill(ids, other)
    for layer in cache.entries:
        for mine, theirs in ((cache.entries, other.entries), (cache.index_keys, other.index_keys)):
            for part, same in zip(mine[layer].stored(0), theirs[layer].stored(), strict=True):
                assert part.dtype == torch.uint8
                assert part.numpy().tobytes() == same.tobytes()
    theirs = {name: size for name, size in other.nbytes.items() if name not in ("open_groups", "spare", "transient")}
    mine = cache.nbytes
    assert {name: mine[name] for name in theirs} == theirs


def test_the_full_model_is_built_without_memory_and_has_the_released_names_and_shapes():
    config = ModelConfig.v41_flash()
    model = Model(config, dtype=torch.bfloat16, device="meta")
    assert {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()} == weight_shapes(config)
    tables = [p.numel() for name, p in model.named_parameters() if name.endswith("engram.embed.weight")]
    assert sum(tables) == (384_006_168 + 384_016_682) * 256


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_narrow_types_run_and_stay_near(dtype):
    model = tiny_model(torch.float32)
    narrow = Model(model.config, model.hash.token_map.numpy(), dtype)
    narrow.load_state_dict(model.state_dict())
    batch = rows(12, 5)
    exact = model.prefill(batch, model.new_cache(2)).last
    got = narrow.prefill(batch, narrow.new_cache(2)).last
    assert got.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(got.float(), exact).min() > (0.9 if dtype == torch.bfloat16 else 0.999)


def test_a_cache_without_rows_is_refused():
    with pytest.raises(ValueError, match="batch must be 1 or more; got 0"):
        Cache(ModelConfig.tiny(), 0)
