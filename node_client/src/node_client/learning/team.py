"""The processes of one node, such as one for each GPU of a machine, that train one policy.

`accelerate launch` or `torchrun` starts them. Each holds the whole policy and its optimizer. The
leader, rank 0, is the node: it alone knows the swarm, the tasks and the state folder. The others
follow its orders (`learning.crew`). Every process generates its share of the completions and makes
its share of the gradients. The gradients are added up, and equal optimizers keep the copies equal
(data parallelism, as in PyTorch's DistributedDataParallel). Alone, one process does all.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from node_client.errors import NodeError
from node_client.model.policy import Policy

# A follower waits for orders as long as its leader waits for the swarm, for a judge, for a person.
PATIENCE = timedelta(days=30)

# Seeds of two batches differ by more than there are processes, which add their rank.
SEEDS_APART = 1 << 20

ItemT = TypeVar("ItemT")


class Promptable(Protocol):
    """A row that belongs to a prompt."""

    @property
    def prompt(self) -> list[int]: ...


RowT = TypeVar("RowT", bound=Promptable)


class Team:
    """The processes of a node; this one is alone. `rank` is its number, of `size` in all."""

    rank = 0
    size = 1

    @contextmanager
    def carrying_out(self, order: object) -> Iterator[None]:
        """Tell the followers what all do next, which the leader does in the block."""
        self.announce(order)
        yield

    def announce(self, order: object) -> None:
        """Tell the followers what they do alone; only the leader may."""

    def gather(self, items: list[ItemT]) -> list[list[ItemT]]:
        """Return every process's items, by rank."""
        return [items]

    def add_up(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes."""
        return list(values)

    def least(self, value: float) -> float:
        """Return the smallest of all processes' values."""
        return value

    def add_up_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by the sum of all processes' ones."""

    def share_rows(self, rows: Sequence[RowT]) -> list[RowT]:
        """Return the rows that this process trains on: whole prompts, dealt out in turn."""
        places = {prompt: i for i, prompt in enumerate(dict.fromkeys(_prompts(rows)))}
        mine = (places[prompt] % self.size == self.rank for prompt in _prompts(rows))
        return [row for row, is_mine in zip(rows, mine, strict=True) if is_mine]

    def share(self, items: Sequence[ItemT]) -> list[ItemT]:
        """Return every `size`-th item, beginning with this process's own."""
        return list(items[self.rank :: self.size])

    def align(
        self, policy: Policy, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler
    ) -> None:
        """Take over the leader's weights, optimizer state and loss scale."""


ALONE = Team()


class LaunchedTeam(Team):
    """Processes that were launched together. Raises NodeError when one of them is gone."""

    def __init__(self) -> None:
        try:
            from accelerate import PartialState
        except ImportError as problem:
            raise NodeError(
                "This process was launched as one of several, which needs accelerate.",
                fix="pip install accelerate, or start a single process.",
            ) from problem
        state = PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
        self.rank: int = state.process_index
        self.size: int = state.num_processes
        self.device: torch.device = state.device
        self.at_rest = True

    @contextmanager
    def carrying_out(self, order: object) -> Iterator[None]:
        """Tell the followers what all do next, which the leader does in the block.

        If the leader fails in it, the followers wait for its part: nothing reaches them any more.
        """
        self.announce(order)
        self.at_rest = False
        yield
        self.at_rest = True

    def announce(self, order: object) -> None:
        """Send an order to every follower; orders are pickled, which only a team's own may be."""
        self._broadcast(order)

    def await_order(self) -> object:
        """Return the leader's next order."""
        return self._broadcast(None)

    def gather(self, items: list[ItemT]) -> list[list[ItemT]]:
        """Return every process's items, by rank."""
        gathered: list[Any] = [None] * self.size
        with _watched():
            torch.distributed.all_gather_object(gathered, items)
        return gathered

    def add_up(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes."""
        sums = torch.tensor(values, dtype=torch.float32, device=self.device)
        self._add_up([sums])
        added: list[float] = sums.tolist()
        return added

    def least(self, value: float) -> float:
        """Return the smallest of all processes' values."""
        # Exact, so that a share of a room comes back as it was.
        smallest = torch.tensor(value, dtype=torch.float64, device=self.device)
        with _watched():
            torch.distributed.all_reduce(smallest, op=torch.distributed.ReduceOp.MIN)
        return smallest.item()

    def add_up_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by the sum; a process without rows adds nothing."""
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter, dtype=parameter.grad_dtype)
            gradients.append(parameter.grad)
        self._add_up(gradients)

    def align(
        self, policy: Policy, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler
    ) -> None:
        """Take over the leader's weights, optimizer state and loss scale, and the least room."""
        for room in (policy.room, policy.sampling_room):
            room.share = self.least(room.share)
        with _watched(), torch.no_grad():
            for tensor in (*policy.trainable(), *policy.remainders.values()):
                # As bytes: not every backend knows all types.
                torch.distributed.broadcast(tensor.detach().view(torch.uint8), src=0)
        if self.rank == 0:
            self._broadcast(on_cpu(optimizer.state_dict()))
        else:
            optimizer.load_state_dict(self._broadcast(None))
        if scaler.is_enabled():
            scaler.load_state_dict(self._broadcast(scaler.state_dict()))

    def _broadcast(self, content: Any) -> Any:
        box = [content]
        with _watched():
            torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def _add_up(self, tensors: Sequence[Tensor]) -> None:
        with _watched():
            sums = [torch.distributed.all_reduce(tensor, async_op=True) for tensor in tensors]
            for work in sums:
                work.wait()


def on_cpu(tree: Any) -> Any:
    """Return a state with its tensors on the CPU; loading it moves them to the reader's device.

    A pickled tensor comes back on the device that it was on: each process's would be made on the
    leader's GPU.
    """
    match tree:
        case Tensor():
            return tree.cpu()
        case dict():
            return {name: on_cpu(part) for name, part in tree.items()}
        case list():
            return [on_cpu(part) for part in tree]
    return tree


@contextmanager
def _watched() -> Iterator[None]:
    """Turn what torch raises for a lost process into an error that a person can act on."""
    try:
        yield
    except RuntimeError as problem:
        raise NodeError(
            f"A process of this node's team is gone: {str(problem).splitlines()[0]}",
            fix="Look for its last words above, then start all of them again.",
        ) from problem


def _prompts(rows: Sequence[Promptable]) -> list[tuple[int, ...]]:
    return [tuple(row.prompt) for row in rows]
