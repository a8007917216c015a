"""AdamW for weights that are kept in halves (`model.halves`)."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from node_client.model.halves import Remainders, join, split

# Numbers of a parameter that are made whole at once: few enough to stay in a processor's cache.
PIECE = 2**18


class HalvesAdamW(torch.optim.AdamW):
    """torch's fused AdamW without weight decay, applied to the float32 numbers of each weight.

    Gradients may be bfloat16 or float32; moments and arithmetic are float32. A weight is made
    whole piece by piece, so a step takes no memory of note. The state is torch's own, so a
    checkpoint can be read by a run in another precision.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], remainders: Remainders, *, lr: float
    ) -> None:
        super().__init__(parameters, lr=lr, weight_decay=0.0, fused=True)
        self._remainders = remainders
        self._scale = 1.0
        # For a piece's gradients and weights: made anew each time they would cost more than AdamW.
        device = next(self._parameters()).device
        self._room = torch.empty(2, PIECE, dtype=torch.float32, device=device)

    @torch.no_grad()
    def clip(self, max_norm: float) -> Tensor:
        """Scale the next step's gradients to this norm at most; return their norm, of all together.

        They are scaled where they are used: bfloat16 ones would be rounded once more.
        """
        norms = [
            torch.linalg.vector_norm(_widen(piece, self._room[0]))
            for parameter in self._parameters()
            if parameter.grad is not None
            for piece in torch.split(parameter.grad.flatten(), PIECE)
        ]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        self._scale = min(1.0, max_norm / (norm.item() + 1e-6))
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make a step. When memory runs out at the first one, nothing has changed."""
        moving = [parameter for parameter in self._parameters() if parameter.grad is not None]
        states = [self._state_of(parameter) for parameter in moving]
        for parameter, state in zip(moving, states, strict=True):
            for whole, gradient, average, square in self._pieces(parameter, state):
                self._update(whole, gradient, average, square, step=state["step"].clone())
            state["step"] += 1
        self._scale = 1.0

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state; torch's own way would round the moments to the weights' type."""
        super().load_state_dict({**state_dict, "state": {}})
        parameters = list(self._parameters())
        for place, values in state_dict["state"].items():
            parameter = parameters[place]
            self.state[parameter] = {
                name: value.to(parameter.device) for name, value in values.items()
            }

    def _parameters(self) -> Iterator[nn.Parameter]:
        for group in self.param_groups:
            yield from group["params"]

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Return a parameter's state, made if there is none yet."""
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            moment = torch.zeros_like(parameter, dtype=torch.float32, requires_grad=False)
            state |= {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": moment,
                "exp_avg_sq": moment.clone(),
            }
            self.state[parameter] = state
        return state

    def _pieces(
        self, parameter: nn.Parameter, state: dict[str, Tensor]
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Yield weights, gradients and both moments, all float32; take each weight back."""
        assert parameter.grad is not None
        averages, squares = state["exp_avg"], state["exp_avg_sq"]
        if parameter not in self._remainders:
            yield parameter, parameter.grad.mul_(self._scale), averages, squares
            return
        columns = (parameter, self._remainders[parameter], parameter.grad, averages, squares)
        pieces = zip(*(torch.split(column.view(-1), PIECE) for column in columns), strict=True)
        for half, remainder, gradient, average, square in pieces:
            whole = join(half, remainder, out=self._room[1, : len(half)])
            yield whole, _widen(gradient, self._room[0]).mul_(self._scale), average, square
            split(whole, half=half, remainder=remainder)

    def _update(
        self, whole: Tensor, gradient: Tensor, average: Tensor, square: Tensor, *, step: Tensor
    ) -> None:
        (group,) = self.param_groups
        beta1, beta2 = group["betas"]
        adamw(
            [whole],
            [gradient],
            [average],
            [square],
            [],
            [step],
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _widen(numbers: Tensor, room: Tensor) -> Tensor:
    """Return numbers in float32, in the beginning of the room."""
    return room[: len(numbers)].copy_(numbers)
