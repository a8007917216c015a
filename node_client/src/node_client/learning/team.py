"""The processes of one node, such as one for each GPU of a machine, that train one policy.

`accelerate launch` or `torchrun` starts the processes. Each has a copy of the whole policy and of
its optimizer. The leader, rank 0, is the node: only the leader has the connection, the tasks and
the state folder. The other processes, its followers, carry out its messages
(`learning.team_messages`). Every process generates a share of the completions and computes a share
of the gradients. The gradients are added up, so all copies change in the same way (data
parallelism, as in PyTorch's DistributedDataParallel).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from node_client.errors import NodeError
from node_client.model.policy import Policy

# A follower waits for messages as long as its leader waits for the swarm, the judge or its owner.
MESSAGE_TIMEOUT = timedelta(days=30)

# Seeds of two batches differ by more than the number of processes, which add their rank.
SEED_STRIDE = 1 << 20

ItemT = TypeVar("ItemT")


class Team:
    """The processes of a node. This base class is for a node with a single process.

    `size` is the number of processes, `rank` the number of this one, from 0; the leader has rank 0.
    `is_idle` is false while the leader works on a message that it sent with `sending`, and stays
    false if the leader fails meanwhile.

    `gather`, `sum`, `minimum`, `sum_gradients` and `align` wait until every process calls them.
    """

    rank = 0
    size = 1
    is_idle = True

    @contextmanager
    def sending(self, message: object) -> Iterator[None]:
        """Send a message to every follower, then run the block, which does the leader's own part.

        If the block fails, `is_idle` stays false: the followers still wait for the leader's part,
        so they cannot receive another message.
        """
        self.send(message)
        self.is_idle = False
        yield
        self.is_idle = True

    def send(self, message: object) -> None:
        """Send a message to every follower; only the leader may call this."""

    def gather(self, items: list[ItemT]) -> list[list[ItemT]]:
        """Return the `items` of all processes: one list for each process, in the order of ranks."""
        return [items]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the values, each summed over all processes."""
        return list(values)

    def minimum(self, value: float) -> float:
        """Return the smallest of all processes' values."""
        return value

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over all processes."""

    def align(
        self, policy: Policy, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler
    ) -> None:
        """Copy the leader's trainable weights, optimizer state and loss scale to every process."""


ALONE = Team()


class LaunchedTeam(Team):
    """The processes of a node that were launched together.

    Creating an instance connects this process with the others, and raises NodeError if accelerate
    is not installed. All methods raise NodeError when another process has ended.
    """

    def __init__(self) -> None:
        try:
            from accelerate import PartialState
        except ImportError as problem:
            raise NodeError(
                "This process was launched as one of several, which needs accelerate.",
                fix="pip install accelerate, or start a single process.",
            ) from problem
        state = PartialState(cpu=not torch.accelerator.is_available(), timeout=MESSAGE_TIMEOUT)
        self.rank: int = state.process_index
        self.size: int = state.num_processes
        self.device: torch.device = state.device

    def send(self, message: object) -> None:
        """Send a message to every follower as a pickle, which is safe: all run the same code."""
        self._broadcast(message)

    def receive(self) -> object:
        """Wait for the leader's next message and return it."""
        return self._broadcast(None)

    def gather(self, items: list[ItemT]) -> list[list[ItemT]]:
        gathered: list[Any] = [None] * self.size
        with _explaining_losses():
            torch.distributed.all_gather_object(gathered, items)
        return gathered

    def sum(self, values: Sequence[float]) -> list[float]:
        sums = torch.tensor(values, dtype=torch.float32, device=self.device)
        self._sum_in_place([sums])
        added: list[float] = sums.tolist()
        return added

    def minimum(self, value: float) -> float:
        # float64, so that a memory budget's share comes back exactly.
        smallest = torch.tensor(value, dtype=torch.float64, device=self.device)
        with _explaining_losses():
            torch.distributed.all_reduce(smallest, op=torch.distributed.ReduceOp.MIN)
        return smallest.item()

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over all processes; missing gradients count as 0."""
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter, dtype=parameter.grad_dtype)
            gradients.append(parameter.grad)
        self._sum_in_place(gradients)

    def align(
        self, policy: Policy, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler
    ) -> None:
        """Copy the leader's trainable weights, optimizer state and loss scale to every process.

        Also set the two memory budgets, for updates and for sampling, of every process to the
        smallest that any process has.
        """
        for budget in (policy.update_budget, policy.sampling_budget):
            budget.share = self.minimum(budget.share)
        with _explaining_losses(), torch.no_grad():
            for tensor in (*policy.trainable(), *policy.remainders.values()):
                # As bytes: not every backend supports all types.
                torch.distributed.broadcast(tensor.detach().view(torch.uint8), src=0)
        if self.rank == 0:
            self._broadcast(on_cpu(optimizer.state_dict()))
        else:
            optimizer.load_state_dict(self._broadcast(None))
        if scaler.is_enabled():
            scaler.load_state_dict(self._broadcast(scaler.state_dict()))

    def _broadcast(self, content: Any) -> Any:
        box = [content]
        with _explaining_losses():
            torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def _sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        with _explaining_losses():
            sums = [torch.distributed.all_reduce(tensor, async_op=True) for tensor in tensors]
            for work in sums:
                work.wait()


def on_cpu(tree: Any) -> Any:
    """Return a state with its tensors on the CPU; each process loads them to its own device.

    Unpickling restores a tensor on the device that it had: without this, all processes would
    allocate the leader's state on the leader's GPU.
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
def _explaining_losses() -> Iterator[None]:
    """Turn torch's error about a process that ended into a NodeError that says what to do."""
    try:
        yield
    except RuntimeError as problem:
        raise NodeError(
            f"A process of this node has ended: {str(problem).splitlines()[0]}",
            fix="Look for its error above, then start all processes again.",
        ) from problem
