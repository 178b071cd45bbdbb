"""What both models do alike around their layers: take over weights, make caches, check a call, decode, generate.

Source: our own.
"""

import numpy as np
import torch
from torch import nn

from deepseek_edu.model import generate as generation
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.tiles import next_ids, padded
from deepseek_edu.reference import weights as names


class LanguageModel(nn.Module):
    """A model that reads tokens into a cache. Subclasses have `config`, `embed`, `mtp` and the methods named below.

        weight_shapes()     {released name: shape} of all its parameters
        prefill, forward    what feeds tokens

    Attributes:
        cache_type: class of its caches.
        optional_weights: beginnings of released names that may be missing.
    """

    cache_type = Cache
    optional_weights = ()

    @property
    def dtype(self):
        """Type of the parameters."""
        return self.embed.weight.dtype

    @property
    def device(self):
        """Where the parameters are."""
        return self.embed.weight.device

    def wrong_values(self, weights):
        """Return what is wrong with the values of weights, {released name: array or tensor}: list of texts."""
        return []

    def load_weights(self, weights):
        """Take over weights by released name, arrays or tensors of any type of numbers. Returns the model.

        Raises:
            ValueError: lists missing, unknown and misshapen names together, and what holds no numbers or wrong ones;
                or the model lies on the device "meta".
        """
        if self.device.type == "meta":
            raise ValueError('the model must have memory to take over weights; got device "meta"; make it on another')
        names.check_shapes(weights, self.weight_shapes(), self.optional_weights, self.wrong_values(weights))
        tensors = {
            name: array.detach() if isinstance(array, torch.Tensor) else torch.as_tensor(np.asarray(array))
            for name, array in weights.items()
        }
        self.load_state_dict(tensors, strict=False)  # what is optional may be missing
        return self

    def new_cache(self, batch=1, quantized=True, spare=None):
        """Return an empty cache, `cache_type`, for a batch of sequences."""
        return self.cache_type(self.config, batch, quantized, self.dtype, self.device, spare)

    def live_cache(self, ids, quantized):
        """Return the cache of one call that trains, for a batch as large as ids, of any type."""
        batch = len(ids) if hasattr(ids, "__len__") else 1
        return self.cache_type(self.config, batch, quantized, self.dtype, self.device, live=True)

    @torch.inference_mode()
    def decode(self, ids, cache, **options):
        """Process one or several new tokens of every row: ids [B] or [B T]; options of `forward`.

        Returns:
            Output, of inference tensors as with `prefill`.
        """
        ids = next_ids(ids, self.device)
        return self.forward(ids[:, None] if ids.ndim == 1 else ids, cache, **options)

    def generate(self, ids, max_new_tokens, **options):
        """Continue prompts; see `generate.generate` for the options. Returns one generate.Generation per row."""
        return generation.generate(self, ids, max_new_tokens, **options)

    @staticmethod
    def require_memory(cache):
        """Raise ValueError for a live cache, which keeps nothing from one call to the next."""
        if getattr(cache, "live", False):
            raise ValueError(
                "cache must keep what it is given; got a live one, for training; use model.new_cache(batch)"
            )

    def checked_tokens(self, ids, cache, counts):
        """Return (ids int64 [B T], counts int64 [B] on the CPU) of what a call was given.

        Args:
            ids: [B T], as `tiles.padded` takes them; counts: [B] or None.
            cache: what the tokens are to go into; it is not touched.

        Raises:
            ValueError: ids are none of the vocabulary, or the cache is not one for them and this model.
        """
        config = self.config
        ids, counts = padded(ids, counts, self.device)
        if ids.min() < 0 or ids.max() >= config.vocab_size:
            raise ValueError(f"ids must be 0 … {config.vocab_size - 1}; got {int(ids.min())} … {int(ids.max())}")
        if not isinstance(cache, self.cache_type):
            raise ValueError(f"cache must come from new_cache() of this model; got {type(cache).__name__}")
        if (cache.dtype, cache.device.type) != (self.dtype, self.device.type):
            raise ValueError(
                f"cache must be of {self.dtype} on {self.device}, as the model is; got {cache.dtype} on "
                f"{cache.device}; use model.new_cache(batch)"
            )
        if cache.live and bool((cache.lengths > 0).any()):
            raise ValueError(
                f"a live cache serves one call from the beginning; it has {cache.lengths.tolist()} tokens; use "
                "model.new_cache(batch) to continue texts"
            )
        if cache.config != config or cache.batch != len(ids):
            raise ValueError(
                f"cache must be made for this configuration and {len(ids)} rows; it has {cache.batch} rows and "
                f"{'the same' if cache.config == config else 'another'} configuration; use model.new_cache(batch)"
            )
        return ids, counts
