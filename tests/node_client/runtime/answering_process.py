"""A client that only answers the judge, as a process that can be killed.

`python -m tests.node_client.runtime.answering_process SITE FOLDER TEXT` answers every question with
TEXT, and prints `generating` for each batch of questions.
"""

import asyncio
import sys
from pathlib import Path

from node_client.runtime.answering import RoundAnswerer
from node_client.runtime.worker import ModelWorker
from node_client.site import Site
from node_client.storage.answers import AnswerSpool
from node_client.swarm.client import SwarmClient
from node_client.swarm.connection import CoordinatorConnection
from tests.node_client.coordinator import TOKEN
from tests.node_client.shell_fakes import HELLO, EchoModel, Notebook, empty_view, no_backoff


def print_generating() -> None:
    sys.stdout.write("generating\n")
    sys.stdout.flush()


async def run(site: Site, folder: Path, text: str) -> None:
    """Answer judge rounds until killed."""
    connection = CoordinatorConnection(
        url=site.socket, token=TOKEN, hello=HELLO, listener=Notebook(), backoff=no_backoff
    )
    answerer = RoundAnswerer(
        client=SwarmClient(connection),
        worker=ModelWorker(),
        generator=EchoModel(text, before_batch=print_generating),
        view=empty_view(),
        spool=AnswerSpool(folder / "answers.jsonl", site=site, token=TOKEN),
        poll_s=0.05,
    )
    async with asyncio.TaskGroup() as group:
        for job in (connection.run(), answerer.run(), answerer.outbox.run()):
            group.create_task(job)


if __name__ == "__main__":
    asyncio.run(run(Site(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
