"""A node's answers to the judge rounds of the tests' coordinator."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from node_client.display.view import NodeView
from node_client.runtime.answering import AnswerGenerator, RoundAnswerer
from node_client.runtime.worker import ModelWorker
from node_client.site import Site
from node_client.storage.answers import AnswerSpool
from tests.node_client.shell_fakes import Connected, empty_view

NEVER_S = 1000.0


def open_spool(folder: Path) -> AnswerSpool:
    return AnswerSpool(folder / "answers.jsonl", site=Site("http://here"), token="token")


@asynccontextmanager
async def running_answerer(
    node: Connected,
    generator: AnswerGenerator,
    *,
    worker: ModelWorker | None = None,
    view: NodeView | None = None,
    folder: Path | None = None,
    poll_s: float = NEVER_S,
) -> AsyncIterator[RoundAnswerer]:
    with TemporaryDirectory() as scratch:
        answerer = RoundAnswerer(
            client=node.client,
            worker=worker or ModelWorker(),
            generator=generator,
            view=view or empty_view(),
            spool=open_spool(folder or Path(scratch)),
            poll_s=poll_s,
        )
        jobs = [asyncio.create_task(answerer.run()), asyncio.create_task(answerer.outbox.run())]
        try:
            yield answerer
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)
