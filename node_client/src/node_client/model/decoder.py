"""Decoding for the Llama family (Llama, Mistral, Qwen2, Qwen3) with few operations per token.

With a small model, transformers spends more time between matrix products than in them. This decoder
runs the same layers on the model's own weights with a preallocated cache. `can_decode` compares the
decoder with the model before the decoder is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from node_client.model.padding import pad_left, positions_of

FAMILY = ("llama", "mistral", "qwen2", "qwen3")
# In smaller models, and in all whose weights are converted to another type, weights with the same
# input are copied into one matrix, for a single product.
MAX_JOINED_PARAMETERS = 50_000_000
_TOLERANCE = 1e-3

# Weights and biases that are applied to the same input and whose outputs are concatenated.
Projection = tuple[tuple[Tensor, Tensor | None], ...]


@dataclass(frozen=True)
class Layer:
    """The weights of one layer."""

    input_norm: Tensor
    query_key_value: Projection
    query_norm: Tensor | None
    key_norm: Tensor | None
    attention_out: Projection
    output_norm: Tensor
    gate_up: Projection
    down: Projection


class Decoder:
    """Holds a model's weights in `dtype` and the key-value cache of a batch of rows.

    Call `start` with the batch, then `step` for each token. Create a new decoder after each change
    of the weights.
    """

    def __init__(self, model: PreTrainedModel, *, dtype: torch.dtype) -> None:
        config, body = model.config, cast(Any, model.base_model)
        join = model.dtype != dtype or model.num_parameters() < MAX_JOINED_PARAMETERS
        self._dtype = dtype
        self._eps: float = config.rms_norm_eps
        self._heads: int = config.num_attention_heads
        self._shared_heads: int = config.num_key_value_heads
        self._layers = [_gather(layer, dtype, join=join) for layer in body.layers]
        self._norm: Tensor = body.norm.weight
        self._embedding: Tensor = body.embed_tokens.weight
        self._head = _project_with([_head_of(model)], dtype, join=False)
        self._rotary: nn.Module = body.rotary_emb

    def start(self, prefilled: Cache, attention: Tensor, *, copies: int, steps: int) -> None:
        """Begin a batch: copy each prompt's cache to `copies` rows with space for `steps` tokens.

        `prefilled` is the model's cache after G prompts, padded to P tokens; `attention` (G, P) is
        1 on the prompts' tokens and 0 on the padding.
        """
        rows, self._width = len(attention) * copies, attention.shape[1]
        self._used = self._width
        self._cache: list[Tensor] = []  # of each layer (2, B, h, P + steps, d): keys and values
        for layer in cast(list[DynamicLayer], prefilled.layers):
            assert layer.keys is not None
            assert layer.values is not None
            _, heads, _, size = layer.keys.shape
            shape = (2, rows, heads, self._width + steps, size)
            states = self._norm.new_empty(shape, dtype=self._dtype)
            states[0, :, :, : self._width] = layer.keys.repeat_interleave(copies, dim=0)
            states[1, :, :, : self._width] = layer.values.repeat_interleave(copies, dim=0)
            self._cache.append(states)
        # Added to the attention scores, to mask the padding before a prompt.
        bias = self._norm.new_zeros(rows, 1, 1, self._width + steps, dtype=self._dtype)
        hidden = attention.repeat_interleave(copies, dim=0) == 0
        bias[:, 0, 0, : self._width].masked_fill_(hidden, -torch.inf)
        self._bias = bias if bool(hidden.any()) else None
        first = attention.sum(dim=1, keepdim=True).repeat_interleave(copies, dim=0)  # (B, 1)
        positions = first + torch.arange(steps, device=attention.device)  # (B, steps)
        cos, sin = self._rotary(self._norm.float(), positions)
        half = cos.shape[-1] // 2
        sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
        self._rotations = (
            torch.stack([cos, sin]).unsqueeze(3).to(self._dtype)
        )  # (2, B, steps, 1, d)

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token (B,) to each row; return the logits (B, V) of the next token."""
        hidden = embedding(tokens, self._embedding).float()  # (B, H), not rounded between layers
        cos, sin = self._rotations[:, :, self._used - self._width]
        self._used += 1
        for layer, cache in zip(self._layers, self._cache, strict=True):
            normed = self._normalise(hidden, layer.input_norm)
            heads = _project(normed, layer.query_key_value)
            gathered = self._attend(heads, layer, cache, cos, sin)
            hidden = hidden + _project(gathered, layer.attention_out)
            normed = self._normalise(hidden, layer.output_norm)
            gate, up = _project(normed, layer.gate_up).chunk(2, dim=1)
            hidden = hidden + _project(silu(gate) * up, layer.down)
        return _project(self._normalise(hidden, self._norm), self._head)

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the rows with these indices, a tensor (K,), in this order."""
        self._cache = [cache[:, rows] for cache in self._cache]
        self._rotations = self._rotations[:, rows]
        self._bias = None if self._bias is None else self._bias[rows]

    def free_cache(self) -> None:
        """Free the memory of the cache; `start` allocates a new one."""
        self._cache, self._bias = [], None

    def _attend(
        self, heads: Tensor, layer: Layer, cache: Tensor, cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Return the attention output (B, heads * d) over the cache and the new token."""
        shared = self._shared_heads
        heads = heads.view(len(heads), self._heads + 2 * shared, -1)  # (B, h, d)
        rotated, values = heads[:, :-shared], heads[:, -shared:]
        if layer.query_norm is not None and layer.key_norm is not None:
            queries = self._normalise(rotated[:, : self._heads], layer.query_norm)
            keys = self._normalise(rotated[:, self._heads :], layer.key_norm)
            rotated = torch.cat([queries, keys], dim=1)
        rotated = torch.addcmul(rotated * cos, rotated.roll(rotated.shape[2] // 2, dims=2), sin)
        cache[0, :, :, self._used - 1] = rotated[:, self._heads :]
        cache[1, :, :, self._used - 1] = values
        # Heads that share keys take the place of a longer query: (B, shared, heads / shared, d).
        queries = rotated[:, : self._heads].reshape(len(heads), shared, -1, heads.shape[2])
        keys, values = cache[..., : self._used, :]
        bias = None if self._bias is None else self._bias[..., : self._used]
        gathered = scaled_dot_product_attention(queries, keys, values, bias)
        return gathered.reshape(len(heads), -1)

    def _normalise(self, states: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(states.float(), weight.shape, weight.float(), self._eps).to(self._dtype)


@torch.no_grad()
def can_decode(model: PreTrainedModel, *, pad_id: int) -> bool:
    """Return whether a Decoder supports a model and reproduces its logits on a trial batch.

    The two sets of logits may differ by up to 0.001.
    """
    if not _is_of_family(model):
        return False
    tokens = [place % model.config.vocab_size for place in range(3, 20)]
    prompts, rest = [tokens[:6], tokens[6:9]], torch.tensor([tokens[9:12]] * 2, device=model.device)
    ids, attention = pad_left(prompts, pad=pad_id, device=model.device)
    prefilled = model(
        input_ids=ids,
        attention_mask=attention,
        position_ids=positions_of(attention),
        use_cache=True,
    )
    decoder = Decoder(model, dtype=model.dtype)
    decoder.start(prefilled.past_key_values, attention, copies=1, steps=rest.shape[1])
    found = torch.stack([decoder.step(column) for column in rest.unbind(dim=1)], dim=1)
    attention = torch.cat([attention, torch.ones_like(rest)], dim=1)
    expected = model(
        input_ids=torch.cat([ids, rest], dim=1),
        attention_mask=attention,
        position_ids=positions_of(attention),
        logits_to_keep=rest.shape[1],
        use_cache=False,
    ).logits
    return bool((found - expected).abs().max() <= _TOLERANCE)


def _is_of_family(model: PreTrainedModel) -> bool:
    """Return whether a model is in FAMILY, with SiLU and full attention, and has no adapters."""
    config = model.config
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    window = getattr(config, "sliding_window", None) if config.model_type == "mistral" else None
    return (
        config.model_type in FAMILY
        and config.hidden_act == "silu"
        and set(kinds) == {"full_attention"}
        and window is None
        # Adapters replace linear layers, and have more than a weight.
        and all(
            type(module) is nn.Linear
            for name, module in model.named_modules()
            if name.endswith(("_proj", "lm_head"))
        )
    )


def _gather(layer: Any, dtype: torch.dtype, *, join: bool) -> Layer:
    attention, mlp = layer.self_attn, layer.mlp

    def take(*parts: nn.Linear) -> Projection:
        return _project_with(parts, dtype, join=join)

    return Layer(
        input_norm=layer.input_layernorm.weight,
        query_key_value=take(attention.q_proj, attention.k_proj, attention.v_proj),
        query_norm=getattr(getattr(attention, "q_norm", None), "weight", None),
        key_norm=getattr(getattr(attention, "k_norm", None), "weight", None),
        attention_out=take(attention.o_proj),
        output_norm=layer.post_attention_layernorm.weight,
        gate_up=take(mlp.gate_proj, mlp.up_proj),
        down=take(mlp.down_proj),
    )


def _project_with(parts: Sequence[nn.Linear], dtype: torch.dtype, *, join: bool) -> Projection:
    """Return weight and bias of each of `parts` in `dtype`; if `join`, as one concatenated pair."""
    pairs = [
        (part.weight.to(dtype), None if part.bias is None else part.bias.to(dtype))
        for part in parts
    ]
    if not join or len(pairs) == 1:
        return tuple(pairs)
    biases = [bias for _, bias in pairs if bias is not None]
    return ((torch.cat([weight for weight, _ in pairs]), torch.cat(biases) if biases else None),)


def _project(states: Tensor, projection: Projection) -> Tensor:
    outputs = [linear(states, weight, bias) for weight, bias in projection]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _head_of(model: PreTrainedModel) -> nn.Linear:
    head: nn.Linear = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    return head
