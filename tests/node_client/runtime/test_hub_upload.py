import asyncio
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from node_client.display.view import NodeView
from node_client.runtime.hub_upload import (
    HubUploader,
    UploadRecord,
    is_better,
    read_upload,
    trace_run,
    upload_to_hub,
    write_upload,
)
from node_client.site import Site
from node_client.storage.manifest import Merit, MeritKind
from swarm_protocol.messages import NodeStanding
from tests.node_client.hub import HubOnThisMachine
from tests.node_client.shell_fakes import empty_view

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
REPOSITORY = "me/model"


class FakeHub:
    """A hub that stores uploads, or refuses them. `hold` lets a test block an upload."""

    def __init__(self) -> None:
        self.uploads: list[tuple[str, dict[str, str]]] = []
        self.trouble: Exception | None = None
        self.started = threading.Event()
        self.hold = threading.Event()
        self.hold.set()

    def upload(self, folder: Path, message: str) -> None:
        self.started.set()
        assert self.hold.wait(20)
        if self.trouble is not None:
            raise self.trouble
        self.uploads.append((message, {path.name: path.read_text() for path in folder.iterdir()}))


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    policy = tmp_path / "step-00000007" / "policy"
    policy.mkdir(parents=True)
    (policy / "config.json").write_text("{}")
    return policy.parent


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_uploader(
    hub: FakeHub, folder: Path, *, clock: Clock, view: NodeView | None = None
) -> HubUploader:
    return HubUploader(
        hub.upload,
        repository=REPOSITORY,
        interval=timedelta(hours=1),
        folder=folder,
        view=view or empty_view(),
        clock=clock,
    )


async def offer(uploader: HubUploader, checkpoint: Path, score: float | None) -> None:
    merit = None if score is None else Merit(kind="judge_score", season="one", value=score)
    uploader.offer(checkpoint, merit=merit, origin=trace_run(empty_view(), step=7, season="one"))
    await uploader.finish()


async def test_model_is_uploaded_only_if_it_has_improved(
    tmp_path: Path, checkpoint: Path, clock: Clock
) -> None:
    fake_hub = FakeHub()
    offered = make_uploader(fake_hub, tmp_path, clock=clock)
    for score in (None, 0.5, 0.5, 0.4, 0.6):
        await offer(offered, checkpoint, score)
        clock.now += timedelta(hours=2)
    assert [message for message, _ in fake_hub.uploads] == [
        "Step 7, judge score 0.500 in season one",
        "Step 7, judge score 0.600 in season one",
    ]
    assert fake_hub.uploads[0][1].keys() == {"config.json", "README.md"}


async def test_uploads_respect_the_interval(tmp_path: Path, checkpoint: Path, clock: Clock) -> None:
    fake_hub = FakeHub()
    offered = make_uploader(fake_hub, tmp_path, clock=clock)
    for score in (0.1, 0.2, 0.3):
        await offer(offered, checkpoint, score)
        clock.now += timedelta(minutes=31)
    assert len(fake_hub.uploads) == 2


async def test_restarted_run_remembers_the_last_upload(
    tmp_path: Path, checkpoint: Path, clock: Clock
) -> None:
    fake_hub = FakeHub()
    await offer(make_uploader(fake_hub, tmp_path, clock=clock), checkpoint, 0.5)
    again = make_uploader(fake_hub, tmp_path, clock=clock)
    await offer(again, checkpoint, 0.6)
    clock.now += timedelta(hours=2)
    await offer(again, checkpoint, 0.4)
    assert len(fake_hub.uploads) == 1


async def test_training_does_not_wait_for_an_upload_and_may_remove_the_checkpoint(
    tmp_path: Path, checkpoint: Path, clock: Clock
) -> None:
    fake_hub = FakeHub()
    fake_hub.hold.clear()
    offered = make_uploader(fake_hub, tmp_path, clock=clock)
    merit = Merit(kind="judge_score", season="one", value=0.5)
    origin = trace_run(empty_view(), step=7, season="one")
    offered.offer(checkpoint, merit=merit, origin=origin)
    assert await asyncio.to_thread(fake_hub.started.wait, 20)
    shutil.rmtree(checkpoint)
    fake_hub.hold.set()
    await offered.finish()
    assert "config.json" in fake_hub.uploads[0][1]


async def test_failed_upload_is_reported_and_retried_after_the_interval(
    tmp_path: Path, checkpoint: Path, clock: Clock
) -> None:
    fake_hub, view = FakeHub(), empty_view()
    offered = make_uploader(fake_hub, tmp_path, clock=clock, view=view)
    fake_hub.trouble = OSError("no network\nat all")
    await offer(offered, checkpoint, 0.5)
    assert view.problem is not None
    assert view.problem.message == "The model could not be uploaded to me/model: no network"
    fake_hub.trouble = None
    await offer(offered, checkpoint, 0.5)
    assert fake_hub.uploads == []
    clock.now += timedelta(hours=1)
    await offer(offered, checkpoint, 0.5)
    assert len(fake_hub.uploads) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_unexpected_error_of_an_upload_is_reported_and_the_next_one_is_tried(
    tmp_path: Path, checkpoint: Path, clock: Clock
) -> None:
    fake_hub, view = FakeHub(), empty_view()
    offered = make_uploader(fake_hub, tmp_path, clock=clock, view=view)
    fake_hub.trouble = KeyError("unexpected")
    await offer(offered, checkpoint, 0.5)
    assert view.problem is not None
    assert (
        view.problem.message
        == "The model could not be uploaded to me/model: the upload was interrupted"
    )
    assert not (tmp_path / "hub").exists()
    fake_hub.trouble = None
    clock.now += timedelta(hours=1)
    await offer(offered, checkpoint, 0.5)
    assert len(fake_hub.uploads) == 1


def test_card_of_a_run_states_its_node_and_standing() -> None:
    view = empty_view()
    view.site, view.node = Site("https://swarm.example.org"), "heron"
    view.standing = NodeStanding(
        reply_to="",
        node="heron",
        rank=None,
        score=0.5,
        interval=(0.4, 0.6),
        n=64,
        rounds=2,
        external_used=0,
    )
    origin = trace_run(view, step=7, season="one")
    assert (origin.node, origin.site) == ("heron", view.site)
    assert origin.judged is not None
    assert (origin.judged.interval, origin.judged.n) == ((0.4, 0.6), 64)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubOnThisMachine]:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with HubOnThisMachine() as running:
        yield running


def test_hugging_face_hub_receives_a_repository_and_one_commit_with_all_files(
    hub: HubOnThisMachine, checkpoint: Path
) -> None:
    upload_to_hub(
        checkpoint / "policy", "Step 7", repository=REPOSITORY, private=True, endpoint=hub.address
    )
    assert hub.made == {"name": "model", "organization": "me", "visibility": "private"}
    assert hub.commits == [("Step 7", {"config.json": b"{}"})]
    assert hub.tokens == {"Bearer hf_secret"}


def test_refusing_or_unreachable_hub_raises_os_error(
    hub: HubOnThisMachine, checkpoint: Path
) -> None:
    hub.refuse = True
    with pytest.raises(OSError, match="403"):
        upload_to_hub(
            checkpoint / "policy",
            "Step 7",
            repository=REPOSITORY,
            private=True,
            endpoint=hub.address,
        )
    with pytest.raises(OSError, match=r"\w"):
        upload_to_hub(
            checkpoint / "policy",
            "Step 7",
            repository=REPOSITORY,
            private=True,
            endpoint="http://127.0.0.1:9",
        )


def uploaded(value: float = 0.5) -> UploadRecord:
    merit = Merit(kind="judge_score", season="one", value=value)
    return UploadRecord(repository=REPOSITORY, step=10, merit=merit, at=NOON.isoformat())


@pytest.mark.parametrize(
    ("kind", "season", "value", "better"),
    [
        ("judge_score", "one", 0.6, True),
        ("judge_score", "one", 0.5, False),
        ("judge_score", "one", 0.4, False),
        ("held_out", "one", 0.9, False),
        ("judge_score", "two", 0.1, True),
    ],
)
def test_only_a_higher_score_of_the_same_kind_or_a_new_season_is_better(
    kind: MeritKind, season: str, value: float, better: bool
) -> None:
    assert is_better(Merit(kind=kind, season=season, value=value), uploaded()) is better
    assert is_better(Merit(kind=kind, season=season, value=value), None)


def test_upload_is_recorded_for_its_repository(tmp_path: Path) -> None:
    write_upload(tmp_path / "hub.json", uploaded())
    assert read_upload(tmp_path / "hub.json", repository=REPOSITORY) == uploaded()
    assert read_upload(tmp_path / "hub.json", repository="me/other") is None


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_unreadable_record_counts_as_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "hub.json").write_bytes(content)
    assert read_upload(tmp_path / "hub.json", repository=REPOSITORY) is None
