"""Uploads the model to the Hugging Face Hub when it has improved, while training continues.

An upload takes minutes and may fail. It runs in its own thread, which training never waits for,
and an error is shown in the panel.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from node_client.display.view import NodeView
from node_client.errors import NodeError
from node_client.model.loading.pretrained import merge_adapters
from node_client.settings.config import Settings
from node_client.storage.export import ADAPTER_CONFIG, CARD
from node_client.storage.manifest import Merit
from node_client.storage.model_card import JudgeScore, ModelOrigin, write_card
from node_client.storage.state import write_private
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.version import CLIENT_VERSION

# How long a run that pauses or ends waits for an unfinished upload.
UPLOAD_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


class UploadRecord(msgspec.Struct, frozen=True):
    """The content of `hub.json`: the latest successful upload.

    `at` is the time when the upload began, in ISO 8601 (UTC).
    """

    repository: str
    step: int
    merit: Merit
    at: str


def is_better(merit: Merit, last: UploadRecord | None) -> bool:
    """Return whether a model with this merit is better than the one in the latest upload, `last`.

    True if `last` is None (no upload yet) or has a merit of another season. False if both merits
    are of the same season and different kinds (judge and held-out score), because different kinds
    cannot be compared.
    """
    if last is None or last.merit.season != merit.season:
        return True
    return merit.is_like(last.merit) and merit.value > last.merit.value


def read_upload(path: Path, *, repository: str) -> UploadRecord | None:
    """Return the latest upload to a repository.

    None if the file cannot be read or is about another repository.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=UploadRecord)
        datetime.fromisoformat(found.at).astimezone(UTC)
    except (OSError, ValueError):  # msgspec's DecodeError is a ValueError
        return None
    return found if found.repository == repository else None


def write_upload(path: Path, record: UploadRecord) -> None:
    """Save the record of an upload. Raises OSError."""
    write_private(path, msgspec.json.encode(record) + b"\n")


# Uploads a folder's files in one commit with a message; they replace files of the same name. Raises
# OSError, ValueError or RuntimeError.
Upload = Callable[[Path, str], None]


def upload_to_hub(
    folder: Path, message: str, *, repository: str, private: bool, endpoint: str | None = None
) -> None:
    """Upload a folder to the Hugging Face Hub in one commit; create the repository if needed.

    Uses the account of `hf auth login` or HF_TOKEN. A new repository is private if `private` is
    true or its organization's default is private. Raises OSError, ValueError or RuntimeError when
    the upload fails.
    """
    from huggingface_hub import HfApi  # takes 0.3 s, which other runs need not wait for
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    hub = HfApi(endpoint=endpoint, library_name="swarm-node", library_version=CLIENT_VERSION)
    # The hub's client has changed its HTTP library before. Its own error has that library's
    # error as a base class.
    network_trouble: tuple[Any, ...] = HfHubHTTPError.__bases__
    try:
        # With None the default of an organization applies.
        hub.create_repo(repository, private=private or None, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
    except network_trouble as problem:
        raise OSError(str(problem)) from problem


class HubUploader:
    """Uploads the models in checkpoints to the Hugging Face Hub.

    Make and use it inside one event loop.
    """

    def __init__(
        self,
        upload: Upload,
        *,
        repository: str,
        interval: timedelta,
        folder: Path,
        view: NodeView,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._upload_folder = upload
        self._repository = repository
        self._interval = interval
        self._staged = folder / "hub"
        self._file = folder / "hub.json"
        self._view = view
        self._clock = clock
        self._last = read_upload(self._file, repository=repository)
        self._tried = datetime.fromisoformat(self._last.at) if self._last is not None else None
        self._idle = asyncio.Event()
        self._idle.set()

    def offer(self, checkpoint: Path, *, merit: Merit | None, origin: ModelOrigin) -> None:
        """Start an upload of the checkpoint's model if it is better than the one uploaded last.

        `merit` is the model's score. No upload starts if `merit` is None, if another upload is
        going on, or if the latest attempt started less than the uploader's `interval` ago.
        """
        now = self._clock()
        if merit is None or not self._idle.is_set() or not is_better(merit, self._last):
            return
        if self._tried is not None and now - self._tried < self._interval:
            return
        self._tried = now
        self._idle.clear()
        record = UploadRecord(
            repository=self._repository,
            step=origin.step,
            merit=merit,
            at=now.isoformat(timespec="seconds"),
        )
        job = partial(self._upload, checkpoint, record, origin, loop=asyncio.get_running_loop())
        # A daemon thread: the process ends without it, and a partial upload makes no commit.
        Thread(target=job, name="hub", daemon=True).start()

    async def finish(self) -> None:
        """Wait for an unfinished upload; after UPLOAD_TIMEOUT_S, log a warning and return."""
        if self._idle.is_set():
            return
        log.info("waiting for the upload to %s", self._repository)
        try:
            async with asyncio.timeout(UPLOAD_TIMEOUT_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the upload to %s was not finished", self._repository)

    def _upload(
        self,
        checkpoint: Path,
        record: UploadRecord,
        origin: ModelOrigin,
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Upload the checkpoint's model, and report success or failure to the event loop.

        Runs in the upload's thread.
        """
        problem: Exception | None = RuntimeError("the upload was interrupted")
        try:
            stage(checkpoint / "policy", self._staged)
            card = write_card(origin, title=self._repository)
            (self._staged / CARD).write_text(card, encoding="utf-8")
            message = f"Step {record.step}, {describe(record.merit)}"
            self._upload_folder(self._staged, message)
            write_upload(self._file, record)
            problem = None
        # huggingface_hub also raises RuntimeError when an upload fails.
        except (OSError, ValueError, RuntimeError, NodeError) as trouble:
            problem = trouble
        finally:
            shutil.rmtree(self._staged, ignore_errors=True)
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(self._finish, record, problem)

    def _finish(self, record: UploadRecord, problem: Exception | None) -> None:
        self._idle.set()
        if problem is None:
            self._last = record
            self._view.show_notice(f"step {record.step} was uploaded to {self._repository}")
            log.info("step %d was uploaded to %s", record.step, self._repository)
            return
        text = str(problem).strip() or type(problem).__name__
        message = f"The model could not be uploaded to {self._repository}: {text.splitlines()[0]}"
        self._view.show_problem("hub", message, "Check `hf auth login`; training continues.")
        log.warning(message)


def open_uploader(settings: Settings, view: NodeView) -> HubUploader | None:
    """Return an uploader if the settings ask for one, else None. Call it inside an event loop."""
    repository = settings.push_to_hub
    if repository is None:
        return None
    return HubUploader(
        partial(upload_to_hub, repository=repository, private=settings.hub_private_repo),
        repository=repository,
        interval=timedelta(minutes=settings.hub_interval),
        folder=settings.state.path,
        view=view,
    )


def trace_run(view: NodeView, *, step: int, season: str) -> ModelOrigin:
    """Return the origin of this run's model after `step` steps, for the model card."""
    standing, judged = view.standing, None
    if standing is not None and standing.score is not None:
        judged = msgspec.convert(standing, JudgeScore, from_attributes=True)
    return ModelOrigin(
        base_model=view.model,
        step=step,
        arm=view.arm,
        season=season,
        system_prompt=SYSTEM_PROMPT if view.season is None else view.season.system_prompt,
        site=view.site,
        node=view.node,
        judged=judged,
    )


def stage(model: Path, folder: Path) -> None:
    """Copy the model in `model` to `folder`. The old content of `folder` is removed.

    The copy remains when the model's checkpoint is removed. Files are hard links where possible,
    because checkpoints are never changed. Adapters are merged into their base model, because the
    base model may be a folder that only this machine has. Raises OSError if a file cannot be read
    or written, and NodeError if the base model or its adapters cannot be loaded.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if (model / ADAPTER_CONFIG).is_file():
        merge_adapters(model, folder)
        return
    shutil.copytree(model, folder, copy_function=_link_or_copy)


def describe(merit: Merit) -> str:
    """Return a merit as text for a commit message."""
    kind = {"judge_score": "judge score", "held_out": "held-out score"}[merit.kind]
    return f"{kind} {merit.value:.3f} in season {merit.season}"


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
