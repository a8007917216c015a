"""Everything that a policy needs before it is trained: adapters, a reference, an optimizer.

The optimizer is AdamW: torch's own, one for weights that are split into two 16-bit halves
(`model.halves`), or one with 8-bit states. Its states are allocated in its first step. If memory
runs out in that step, all states are dropped, so that the next attempt does not find incomplete
ones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from node_client.errors import SettingsError
from node_client.model.halves import Remainders, join, split
from node_client.model.policy import Policy
from node_client.settings.choices import OptimizerKind
from node_client.settings.train_config import TrainConfig, learning_rate_for

# Tokenizer, configuration and notes beside the weights.
_NOTES_BYTES = 1 << 20
# Weights of a parameter that are joined at a time: few enough to stay in a processor's cache.
PIECE = 2**18


def checkpoint_bytes(policy: Policy, config: TrainConfig) -> int:
    """Return the bytes of a checkpoint on disk: float32 weights, optimizer state and small files.

    With adapters, only the small files are counted. The adapters are small too, and the policy does
    not have them yet when this function is called.
    """
    if config.lora_r:
        return _NOTES_BYTES
    return policy.parameters * (4 + _state_bytes(config)) + _NOTES_BYTES


def begin_training(policy: Policy, config: TrainConfig) -> torch.optim.Optimizer:
    """Prepare the policy for training as configured, and return its optimizer.

    The function sets precision, adapters, reference and memory budgets. With a KL term, the present
    model becomes the reference. A resumed run needs the reference with which the run started, so
    call this function before a checkpoint is loaded. Raises SettingsError if bitsandbytes or peft
    is needed and missing, or if the model has none of the layers to adapt.
    """
    policy.set_precision(config.precision)
    is_8bit = config.optimizer == "adamw_8bit"
    if not (config.lora_r or is_8bit):
        policy.halve_weights()
    if config.lora_r:
        policy.add_adapters(
            rank=config.lora_r, alpha=config.lora_alpha, target_modules=config.lora_target_modules
        )
    if config.beta:
        policy.keep_reference()
    if config.gradient_checkpointing:
        policy.checkpoint_activations()
    policy.estimate_budgets(config.micro_batch_tokens, state_bytes=_state_bytes(config))
    rate = learning_rate_for(config, parameters=policy.parameters)
    if is_8bit:
        return _adamw_8bit(policy, rate=rate)
    if policy.remainders:
        return HalvesAdamW(policy.trainable(), policy.remainders, lr=rate)
    return torch.optim.AdamW(
        policy.trainable(),
        lr=rate,
        weight_decay=0.0,
        fused=True,  # several times faster on a CPU too
    )


def resume_optimizer(
    optimizer: torch.optim.Optimizer, state: Mapping[str, Any], *, kind: OptimizerKind
) -> str | None:
    """Load the optimizer state from a trainer's saved `state`, and return None.

    If the saved optimizer is not of this `kind`, load nothing and return a notice for the owner:
    one kind cannot use the moments of another. The learning rate of `optimizer` stays as it is.
    """
    saved = state.get("optimizer_kind") or _guess_kind(state["optimizer"])
    if saved != kind:
        return (
            f"The checkpoint's optimizer was {saved}, this run's is {kind}: it starts without the "
            "averages of earlier gradients. Everything else continues."
        )
    rate = optimizer.param_groups[0]["lr"]
    optimizer.load_state_dict(state["optimizer"])
    # The rate is a setting of this run, not of the run that wrote the checkpoint.
    optimizer.param_groups[0]["lr"] = rate
    return None


def _guess_kind(state: Mapping[str, Any]) -> str:
    """Return the kind of optimizer that saved this state, for checkpoints that do not name it."""
    is_torch = all("exp_avg" in values for values in state["state"].values())
    return "adamw" if is_torch else "adamw_8bit"


def make_scaler(policy: Policy, config: TrainConfig) -> torch.amp.GradScaler:
    """Return a loss scaler that keeps float16 gradients from underflowing.

    This is dynamic loss scaling (arXiv 1710.03740): a step whose gradients overflow is skipped, and
    the scale is reduced for the next one. With other precisions the scaler does nothing.
    """
    return torch.amp.GradScaler(policy.device.type, enabled=config.precision == "fp16")


def _adamw_8bit(policy: Policy, *, rate: float) -> torch.optim.Optimizer:
    """Return bitsandbytes' AdamW with states in 8 bits (Dettmers et al., arXiv 2110.02861)."""
    try:
        from bitsandbytes.optim.adamw import AdamW8bit
    except ImportError as problem:
        raise SettingsError(
            "The optimizer adamw_8bit needs bitsandbytes, which is not installed.",
            fix="pip install bitsandbytes, or leave the optimizer at adamw.",
        ) from problem
    make: Callable[..., torch.optim.Optimizer] = AdamW8bit
    optimizer = make(policy.trainable(), lr=rate, weight_decay=0.0)
    optimizer.register_step_pre_hook(_allocate_states)
    return optimizer


def _state_bytes(config: TrainConfig) -> int:
    """Return the bytes of optimizer state for each trained weight; a weight is one number."""
    return 2 if config.optimizer == "adamw_8bit" else 8


class HalvesAdamW(torch.optim.AdamW):
    """torch's fused AdamW without weight decay, for weights that are split into two 16-bit halves.

    Such a weight is a float32 number, kept as a bfloat16 parameter and a remainder
    (`model.halves`). Other weights are updated as usual. Gradients may be bfloat16 or float32.
    Moments and arithmetic are float32. A step restores the float32 weights piece by piece, so it
    needs hardly any extra memory. The state has torch's format, so a run in another precision can
    read the checkpoint.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], remainders: Remainders, *, lr: float
    ) -> None:
        super().__init__(parameters, lr=lr, weight_decay=0.0, fused=True)
        self._remainders = remainders
        self._scale = 1.0
        # For a piece's gradients and weights: allocating them each time would cost more than AdamW.
        device = next(self._parameters()).device
        self._scratch = torch.empty(2, PIECE, dtype=torch.float32, device=device)

    @torch.no_grad()
    def clip(self, max_norm: float) -> Tensor:
        """Limit the total norm of the gradients to `max_norm` in the next call of `step`.

        Return the norm before the limit is applied. The gradients are scaled in `step`, not here,
        because bfloat16 gradients would be rounded once more.
        """
        norms = [
            torch.linalg.vector_norm(_widen(piece, self._scratch[0]))
            for parameter in self._parameters()
            if parameter.grad is not None
            for piece in torch.split(parameter.grad.flatten(), PIECE)
        ]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        self._scale = min(1.0, max_norm / (norm.item() + 1e-6))
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make a step and return None; `closure` is ignored.

        Only parameters that have a gradient are updated. Before the first update, moments are
        allocated for each of them that has none yet. So if memory runs out in this allocation, no
        weight has changed.
        """
        moving = [parameter for parameter in self._parameters() if parameter.grad is not None]
        states = [self._state_of(parameter) for parameter in moving]
        for parameter, state in zip(moving, states, strict=True):
            for weight, gradient, average, square in self._pieces(parameter, state):
                self._update(weight, gradient, average, square, step=state["step"].clone())
            state["step"] += 1
        self._scale = 1.0

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state with float32 moments; torch's own method would round them to bfloat16."""
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
        """Return a parameter's state, allocated if there is none yet."""
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
        """Yield a parameter's weights, gradients and both moments in pieces, all float32.

        The caller changes weights and moments in place. The weights of a piece are stored when the
        next one is requested, so the caller must iterate to the end.
        """
        assert parameter.grad is not None
        averages, squares = state["exp_avg"], state["exp_avg_sq"]
        if parameter not in self._remainders:
            yield parameter, parameter.grad.mul_(self._scale), averages, squares
            return
        columns = (parameter, self._remainders[parameter], parameter.grad, averages, squares)
        pieces = zip(*(torch.split(column.view(-1), PIECE) for column in columns), strict=True)
        for half, remainder, gradient, average, square in pieces:
            full = join(half, remainder, out=self._scratch[1, : len(half)])
            yield full, _widen(gradient, self._scratch[0]).mul_(self._scale), average, square
            split(full, half=half, remainder=remainder)

    def _update(
        self, full: Tensor, gradient: Tensor, average: Tensor, square: Tensor, *, step: Tensor
    ) -> None:
        (group,) = self.param_groups
        beta1, beta2 = group["betas"]
        adamw(
            [full],
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


def _widen(numbers: Tensor, scratch: Tensor) -> Tensor:
    """Copy `numbers` as float32 to the start of `scratch`, and return the slice that holds them."""
    return scratch[: len(numbers)].copy_(numbers)


@contextmanager
def dropping_partial_states(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """If the optimizer step in the block fails, drop all optimizer states that it allocated.

    The step fails if it raises RuntimeError or MemoryError, as when memory runs out. The error
    propagates. Dropping is correct only if all states are allocated before the first parameter
    changes. torch's AdamW and `HalvesAdamW` do this, and bitsandbytes' AdamW does it with the hook
    `_allocate_states`.
    """
    existing = {parameter for parameter, state in optimizer.state.items() if state}
    try:
        yield
    except (RuntimeError, MemoryError):
        for parameter in [each for each in optimizer.state if each not in existing]:
            del optimizer.state[parameter]
        raise


def _allocate_states(optimizer: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Allocate all states of a bitsandbytes optimizer, as a hook that runs before its step.

    bitsandbytes itself allocates the state of one parameter, changes that parameter, and goes on to
    the next: if memory ran out halfway, a repeated step would change the first parameters twice.
    """
    for place, group in enumerate(optimizer.param_groups):
        for number, parameter in enumerate(group["params"]):
            if parameter.grad is not None and not optimizer.state[parameter]:
                optimizer.init_state(group, parameter, place, number)
