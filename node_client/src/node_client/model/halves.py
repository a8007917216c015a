"""Float32 weights stored as two halves of 16 bits: a bfloat16 weight and its remainder.

Mixed-precision training keeps float32 weights and casts them to bfloat16 for every pass. Here the
rounded weights are stored, each with a remainder, and the two together are exactly the float32
number: nothing is cast, and nothing is stored twice. apex and Megatron-LM call this
`store_param_remainders`.

The weights that are stored in halves are those of linear layers, which autocast multiplies in
bfloat16 anyway, and of the input embedding, which often shares the head's weights. The embedding
returns its rows in float32, so that the residual stream is not rounded.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import PreTrainedModel

# The remainder of each halved parameter: int16, of the parameter's shape.
Remainders = Mapping[nn.Parameter, Tensor]

_HALF_STEP = 1 << 15


def split(full: Tensor, *, half: Tensor, remainder: Tensor) -> None:
    """Split the float32 numbers in `full` into `half` (bfloat16) and `remainder` (int16).

    The three tensors have the same shape; `full` must be contiguous and is overwritten. A float32
    number is rounded to the nearest bfloat16 number, or away from zero if it lies halfway between
    two. If the bits of each number are read as an integer, full = half * 2**16 + remainder.
    """
    bits = full.view(torch.int32)
    remainder.copy_(bits)  # the lower 16 bits, of which the first is the sign
    half.view(torch.int16).copy_(bits.add_(_HALF_STEP).bitwise_right_shift_(16))


def join(half: Tensor, remainder: Tensor, *, out: Tensor) -> Tensor:
    """Undo `split`: write the float32 numbers into `out`, and return `out`."""
    bits = out.view(torch.int32)
    bits.copy_(half.view(torch.int16)).bitwise_left_shift_(16).add_(remainder)
    return out


def can_halve(model: PreTrainedModel) -> bool:
    """Return whether `halve_weights` supports a model: its embedding is a plain `nn.Embedding`."""
    return type(model.get_input_embeddings()) is nn.Embedding


@torch.no_grad()
def halve_weights(model: PreTrainedModel) -> Remainders:
    """Store the parameters of linear layers and the embedding in bfloat16; return the remainders.

    The parameters stay the same objects. Afterwards the model needs autocast to run.
    """
    rows = cast(nn.Embedding, model.get_input_embeddings())
    model.set_input_embeddings(WideEmbedding(rows, tied=_is_tied(model)))
    remainders: dict[nn.Parameter, Tensor] = {}
    for module in model.modules():
        if type(module) not in (nn.Linear, WideEmbedding):
            continue
        for parameter in module.parameters(recurse=False):
            if parameter not in remainders:
                full = parameter.data.clone(memory_format=torch.contiguous_format)
                half = torch.empty_like(full, dtype=torch.bfloat16)
                remainder = torch.empty_like(full, dtype=torch.int16)
                split(full, half=half, remainder=remainder)
                parameter.data, remainders[parameter] = half, remainder
    for parameter in model.parameters():
        if parameter not in remainders:
            # Loaded weights may be views of one mapped file, which any one of them keeps open.
            parameter.data = parameter.data.clone()
    return remainders


@contextmanager
def full_precision(remainders: Remainders) -> Iterator[None]:
    """Make the parameters that are stored in two halves float32 inside the `with` block.

    Changes that the block makes to these parameters are lost: afterwards they have their earlier
    halves again.
    """
    halves = {parameter: parameter.data for parameter in remainders}
    try:
        for parameter, remainder in remainders.items():
            full = torch.empty_like(parameter, dtype=torch.float32, requires_grad=False)
            parameter.data = join(halves[parameter], remainder, out=full)
        yield
    finally:
        for parameter, half in halves.items():
            parameter.data = half


class WideEmbedding(nn.Embedding):
    """An embedding with bfloat16 weights that returns float32 and sums gradients in float32.

    If the model's head has the same weights, the embedding adds its gradient to the head's gradient
    in place, so that no second gradient of the whole vocabulary is allocated.
    """

    def __init__(self, rows: nn.Embedding, *, tied: bool) -> None:
        super().__init__(
            rows.num_embeddings, rows.embedding_dim, rows.padding_idx, _weight=rows.weight.data
        )
        self.weight = rows.weight
        self._pending: list[tuple[Tensor, Tensor]] | None = None
        if tied:
            self._pending = []
            self.weight.register_hook(self._add_pending)  # type: ignore[no-untyped-call]

    def forward(self, ids: Tensor) -> Tensor:
        """Return the embeddings (…, H) of token ids (…), in float32."""
        if self._pending:
            self._pending.clear()  # left by a backward pass in which memory ran out
        rows = _LookUp.apply(self.weight, ids, self.padding_idx, self._pending)  # type: ignore[no-untyped-call]
        return cast(Tensor, rows)

    def _add_pending(self, gradient: Tensor) -> None:
        """Add, in place, the embedding's own gradient to `gradient`, the gradient of the head.

        torch calls this before it accumulates `gradient` into the weights' gradient.
        """
        assert self._pending is not None
        for used, rows in self._pending:
            full = gradient.index_select(0, used).float() + rows
            gradient.index_copy_(0, used, full.to(gradient.dtype))
        self._pending.clear()


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        ids: Tensor,
        padding_idx: int | None,
        pending: list[tuple[Tensor, Tensor]] | None,
    ) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape, ctx.padding_idx, ctx.pending = weight.shape, padding_idx, pending
        return embedding(ids, weight).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        (ids,) = ctx.saved_tensors
        used, places = ids.flatten().unique(return_inverse=True)
        rows = gradient.new_zeros(len(used), gradient.shape[-1])
        rows.index_add_(0, places, gradient.flatten(0, -2))
        if ctx.padding_idx is not None:
            rows[used == ctx.padding_idx] = 0
        if ctx.pending is not None:
            ctx.pending.append((used, rows))
            return None, None, None, None
        return rows.new_zeros(ctx.shape).index_copy_(0, used, rows), None, None, None


def _is_tied(model: PreTrainedModel) -> bool:
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    return head is not None and head.weight is model.get_input_embeddings().weight
