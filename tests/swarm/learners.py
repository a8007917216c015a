"""Real nodes that train a toy policy, many of them in one thread of this process.

Everything is the client's own code, from the socket to the trainer. Only the text of the policy is
synthetic: half of its answers are right, so every rollout is informative.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from string import ascii_lowercase
from types import TracebackType
from typing import Any, Self

from node_client.display.view import NodeView
from node_client.learning.report import StepReport, TrainingTotals
from node_client.model.demo.make_model import build_model
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.runtime.node import SwarmNode
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.site import Site
from node_client.storage.lines import read_lines
from node_client.storage.receipts import StoredReceipt
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import TOY
from tests.swarm.flock import WRONG, solve

STOPS_WITHIN_S = 30.0


# Letters of a word of prose.
WORD = 8


@dataclass(frozen=True)
class Pace:
    """The minimum seconds of a training step, and of each answer to the judge."""

    step_s: float = 0.5
    answer_s: float = 0.0


class HalfRight(Policy):
    """A toy policy whose every other answer is right. It is slow only in judge rounds.

    It writes `words` random words before an answer, as a model does that reasons.
    """

    def __init__(self, *, pace: Pace, seed: int, words: int) -> None:
        super().__init__(model=build_model(TOY, seed=seed), tokenizer=build_tokenizer(), name="toy")
        self._pace = pace
        self._asked = seed
        self._words_before = words
        self._random = Random(seed)

    def generate(
        self, questions: Sequence[str], *, completions: int, **sampling: Any
    ) -> list[list[Generated]]:
        """Answer each question `completions` times."""
        if completions == 1:
            time.sleep(self._pace.answer_s * len(questions))
        return [[self._write(question) for _ in range(completions)] for question in questions]

    def _write(self, question: str) -> Generated:
        self._asked += 1
        letters = self._random.choices(ascii_lowercase, k=self._words_before * WORD)
        prose = "".join(
            letter if place % WORD else f" {letter}" for place, letter in enumerate(letters)
        )
        text = prose + (WRONG if self._asked % 2 else f"<answer>{solve(question)}</answer>")
        ids = self.completion_ids(text, "stop")
        assert ids is not None
        return Generated(text=text, finish_reason="stop", token_ids=ids, logprobs=[-1.0] * len(ids))


@dataclass
class CountingView(NodeView):
    """Counts the external rollouts in training, by the name of their node.

    `supplied` counts the steps with any: a step goes without if the request takes too long.
    """

    used_of: Counter[str] = field(default_factory=Counter)
    supplied: int = 0

    def show_step(self, report: StepReport, totals: TrainingTotals) -> None:
        """Count the external rollouts of a step."""
        super().show_step(report, totals)
        self.used_of.update(name.node for name in report.used)
        self.supplied += bool(report.used)


class Learner:
    """One node. `site` may be the address of a proxy."""

    def __init__(
        self,
        *,
        site: Site,
        name: str,
        token: str,
        folder: Path,
        pace: Pace,
        seed: int,
        words: int,
    ) -> None:
        self.name = name
        self._site = site
        self._policy = HalfRight(pace=pace, seed=seed, words=words)
        state = StateDir(folder / name)
        state.path.mkdir(parents=True)
        self._settings = Settings(
            state=state, site=site, token=token, model="toy", step_seconds=pace.step_s
        )
        self.view = CountingView(
            model="toy", parameters=self._policy.parameters, device="cpu", arm="swarm", site=site
        )
        self._node: SwarmNode | None = None

    async def run(self, verifier: Verifier) -> None:
        """Take part until stopped. Raises the error that ends the node."""
        async with ModelWorker() as worker:
            equipment = Equipment(
                policy=self._policy, verifier=verifier, worker=worker, view=self.view
            )
            self._node = SwarmNode(self._settings, site=self._site, equipment=equipment)
            await self._node.run()

    def stop(self) -> None:
        """Stop the node. Call it on its loop."""
        if self._node is not None:
            self._node.stop()

    @property
    def is_connected(self) -> bool:
        """Whether it has been welcomed on its current connection."""
        return self.view.connection is not None and self.view.connection.phase == "connected"

    @property
    def steps(self) -> int:
        """The number of training steps of this run."""
        return self.view.steps_this_run

    @property
    def external_used(self) -> int:
        """The number of external rollouts used in training."""
        return self.view.totals.external_used if self.view.totals is not None else 0

    @property
    def external_dropped(self) -> Mapping[str, int]:
        """The number of external rollouts not used in training, by reason."""
        return dict(self.view.totals.external_dropped) if self.view.totals is not None else {}

    def receipts(self) -> list[StoredReceipt]:
        """The judge's receipts for this node's answers, from the node's own disk."""
        return read_lines(self._settings.state.receipts, StoredReceipt)


class Learners:
    """Nodes in their own thread, from the start of the block to its end."""

    def __init__(
        self,
        *,
        tokens: Mapping[str, str],
        sites: Callable[[str], Site],
        folder: Path,
        verifier: Verifier,
        pace: Pace,
        words: int = 0,
    ) -> None:
        self.nodes = [
            Learner(
                site=sites(name),
                name=name,
                token=token,
                folder=folder,
                pace=pace,
                seed=place,
                words=words,
            )
            for place, (name, token) in enumerate(tokens.items())
        ]
        self._verifier = verifier
        self._loop = asyncio.new_event_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="learners")

    def __enter__(self) -> Self:
        self._running = self._thread.submit(self._loop.run_until_complete, self._live())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            self._loop.call_soon_threadsafe(node.stop)
        try:
            self._running.result(timeout=STOPS_WITHIN_S)
        finally:
            self._thread.shutdown(wait=False)
            self._loop.close()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            for node in self.nodes:
                group.create_task(node.run(self._verifier))

    @property
    def connected(self) -> int:
        """The number of connected nodes."""
        return sum(node.is_connected for node in self.nodes)

    @property
    def steps(self) -> list[int]:
        """The number of steps of each node."""
        return [node.steps for node in self.nodes]
