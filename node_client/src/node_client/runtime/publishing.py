"""Puts the model on the Hugging Face Hub when it has improved, beside the training.

An upload takes minutes and may fail. It runs in a thread of its own that nobody waits for while
training, and what goes wrong is a line in the panel.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from node_client.display.view import View
from node_client.errors import NodeError
from node_client.model.loading.pretrained import merge_adapters
from node_client.settings.config import Settings
from node_client.storage.export import ADAPTER_CONFIG, CARD
from node_client.storage.manifest import Merit
from node_client.storage.model_card import Provenance, Rating, write_card
from node_client.storage.publication import (
    Publication,
    is_better,
    is_rested,
    read_publication,
    write_publication,
)
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.version import CLIENT_VERSION

# How long a run that ends waits for an upload that is under way.
PATIENCE_S = 60.0

log = logging.getLogger(__name__)


class Hub(Protocol):
    """A place for models. Raises OSError or ValueError when it cannot take one."""

    def upload(self, folder: Path, *, repository: str, message: str) -> None:
        """Replace what is in the repository, which is made if need be."""


@dataclass(frozen=True)
class HuggingFaceHub:
    """The Hugging Face Hub, as whoever `hf auth login` or HF_TOKEN says."""

    private: bool
    endpoint: str | None = None

    def upload(self, folder: Path, *, repository: str, message: str) -> None:
        """Put a folder there in one commit. Raises OSError or ValueError."""
        from huggingface_hub import HfApi  # 0.3 s that other runs need not wait for
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        hub = HfApi(
            endpoint=self.endpoint, library_name="swarm-node", library_version=CLIENT_VERSION
        )
        # The hub's client has changed its HTTP library before; the base of its own error names it.
        network_trouble: tuple[Any, ...] = HfHubHTTPError.__bases__
        try:
            # None leaves an organization's own default to it.
            hub.create_repo(repository, private=self.private or None, exist_ok=True)
            hub.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
        except network_trouble as problem:
            raise OSError(str(problem)) from problem


class Publisher:
    """Offers each checkpoint's model to a hub. Belongs to the event loop that it is used in."""

    def __init__(
        self,
        hub: Hub,
        *,
        repository: str,
        interval: timedelta,
        folder: Path,
        view: View,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._hub = hub
        self._repository = repository
        self._interval = interval
        self._staged = folder / "hub"
        self._record = folder / "hub.json"
        self._view = view
        self._clock = clock
        self._last = read_publication(self._record, repository=repository)
        self._tried = datetime.fromisoformat(self._last.at) if self._last is not None else None
        self._idle = asyncio.Event()
        self._idle.set()

    def offer(self, checkpoint: Path, *, merit: Merit | None, origin: Provenance) -> None:
        """Begin to upload a checkpoint's model if it has improved and enough time has passed."""
        now = self._clock()
        if merit is None or not self._idle.is_set() or not is_better(merit, self._last):
            return
        if not is_rested(self._tried, now=now, interval=self._interval):
            return
        self._tried = now
        self._idle.clear()
        publication = Publication(
            repository=self._repository,
            step=origin.step,
            merit=merit,
            at=now.isoformat(timespec="seconds"),
        )
        job = partial(
            self._publish, checkpoint, publication, origin, loop=asyncio.get_running_loop()
        )
        # A daemon: a process that ends does not wait for it, and half an upload is no commit.
        Thread(target=job, name="hub", daemon=True).start()

    async def settle(self) -> None:
        """Give an upload that is under way a moment to end."""
        if self._idle.is_set():
            return
        log.info("waiting for the upload to %s", self._repository)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the upload to %s was left unfinished", self._repository)

    def _publish(
        self,
        checkpoint: Path,
        publication: Publication,
        origin: Provenance,
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Upload, in the thread, and tell the loop how it went, whatever that was."""
        problem: Exception | None = RuntimeError("the upload broke off")
        try:
            stage(checkpoint / "policy", self._staged)
            card = write_card(origin, title=self._repository)
            (self._staged / CARD).write_text(card, encoding="utf-8")
            message = f"Step {publication.step}, {describe(publication.merit)}"
            self._hub.upload(self._staged, repository=self._repository, message=message)
            write_publication(self._record, publication)
            problem = None
        # huggingface_hub raises RuntimeError too when an upload fails.
        except (OSError, ValueError, RuntimeError, NodeError) as trouble:
            problem = trouble
        finally:
            shutil.rmtree(self._staged, ignore_errors=True)
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                loop.call_soon_threadsafe(self._finish, publication, problem)

    def _finish(self, publication: Publication, problem: Exception | None) -> None:
        self._idle.set()
        if problem is None:
            self._last = publication
            self._view.note_notice(f"step {publication.step} was put on {self._repository}")
            log.info("step %d was put on %s", publication.step, self._repository)
            return
        text = str(problem).strip() or type(problem).__name__
        message = f"The model was not put on {self._repository}: {text.splitlines()[0]}"
        self._view.note_problem("hub", message, "Check `hf auth login`; training goes on.")
        log.warning(message)


def open_publisher(settings: Settings, view: View) -> Publisher | None:
    """Return a publisher for whoever asked for one. Call it inside an event loop."""
    if settings.push_to_hub is None:
        return None
    return Publisher(
        HuggingFaceHub(private=settings.hub_private_repo),
        repository=settings.push_to_hub,
        interval=timedelta(minutes=settings.hub_interval),
        folder=settings.state.path,
        view=view,
    )


def trace_run(view: View, *, step: int, season: str) -> Provenance:
    """Return where the model of this run comes from, as far as it is known now."""
    standing, site = view.standing, view.site
    rating = None
    if standing is not None and standing.score is not None:
        rating = Rating(
            score=standing.score,
            interval=standing.interval,
            n=standing.n,
            rounds=standing.rounds,
        )
    return Provenance(
        base_model=view.model,
        step=step,
        arm=view.arm,
        season=season,
        system_prompt=SYSTEM_PROMPT if view.season is None else view.season.system_prompt,
        site=site.base if site is not None else "",
        node=view.node,
        page=site.page(view.node) if site is not None and view.node else "",
        rating=rating,
    )


def stage(model: Path, folder: Path) -> None:
    """Make a copy of a model's folder that stays when the checkpoint is removed.

    Files are linked where the file system can: checkpoints are never changed, only removed.
    Adapters are merged: what they stand on may be a folder of this machine. Raises OSError and
    NodeError.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if (model / ADAPTER_CONFIG).is_file():
        merge_adapters(model, folder)
        return
    shutil.copytree(model, folder, copy_function=_link_or_copy)


def describe(merit: Merit) -> str:
    """Return a merit as a commit's message tells it."""
    kind = {"judge_score": "judge score", "held_out": "held-out score"}[merit.kind]
    return f"{kind} {merit.value:.3f} in season {merit.season}"


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
