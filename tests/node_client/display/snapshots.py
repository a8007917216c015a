"""The panel as text at three sizes, in important situations: the files in `snapshots/`.

`python -m tests.node_client.display.snapshots` draws them again. Read the diff before you
commit it.
"""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from rich.console import Console

from node_client.display.events import CheckpointSaved, MemoryUse, Noticed, ProblemFound
from node_client.display.panel import render
from node_client.display.view import NodeView
from node_client.site import Site
from node_client.storage.pauses import Pause
from node_client.storage.state import Lifetime
from node_client.swarm.connection import ConnectionState
from swarm_protocol.version import CLIENT_VERSION
from tests.node_client.panel_views import full_view, report, totals

FOLDER = Path(__file__).parent / "snapshots"
SIZES = ((80, 24), (120, 40), (200, 50))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _before_noon(**duration: float) -> str:
    return (NOON - timedelta(**duration)).isoformat()


def first_frame() -> NodeView:
    site = Site("https://swarm.example.org")
    return NodeView(model="tiny", parameters=180_000, device="cpu", arm="swarm", site=site)


def training_with_a_problem() -> NodeView:
    view = after_many_rounds()
    view.problem = ProblemFound(
        code="checkpoint",
        message="No checkpoint was saved: [Errno 28] No space left on device",
        fix="Free some space in /home/amber/.local/state/swarm-node/swarm.example.org.",
        at=_before_noon(seconds=70),
    )
    view.notices.append(Noticed(message="The season sums has begun.", at=_before_noon(hours=2)))
    return view


def after_many_rounds() -> NodeView:
    view = full_view()
    view.memory_use = MemoryUse(process=3 * 2**29, accelerator=2**33)
    view.saved = CheckpointSaved(step=1200, at=_before_noon(seconds=75))
    view.lifetime = Lifetime(12_345, 1_000_000, 96_000, 90_000, 40_000, 72_000.0)
    return view


def long_hostile_names() -> NodeView:
    view = training_with_a_problem()
    assert view.season is not None
    view.node = "[red]node\x1b[2J[/red]" + "n" * 300
    view.model = "somebody/" + "m" * 90 + "\x1b[31m"
    view.season = msgspec.structs.replace(view.season, name="\x07[blink]" + "季" * 200)
    view.problem = ProblemFound(
        code="c\n" * 50, message="\x1b[2J" + "message " * 90, fix="fix " * 90, at=_before_noon()
    )
    for number in range(3):
        view.notices.append(Noticed(message=f"{number} " + "\u202enotice " * 90, at=_before_noon()))
    view.show_step(report(completion="\x1b[31m[bold]red\n" * 90), totals())
    return view


def paused() -> NodeView:
    view = after_many_rounds()
    view.connection = ConnectionState("connected")
    view.paused = Pause("asked")
    return view


SITUATIONS: dict[str, Callable[[], NodeView]] = {
    "first_frame": first_frame,
    "training_with_a_problem": training_with_a_problem,
    "after_many_rounds": after_many_rounds,
    "long_hostile_names": long_hostile_names,
    "paused": paused,
}


def draw(view: NodeView, *, width: int, height: int) -> str:
    """Return the panel's lines, as a terminal of this size shows them."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(render(view, now=NOON, clock=0, height=height))
    assert isinstance(console.file, io.StringIO)
    # Otherwise each release would change all files.
    return console.file.getvalue().replace(f"swarm-node {CLIENT_VERSION}", "swarm-node 0.0.0")


def file_of(situation: str, *, width: int, height: int) -> Path:
    return FOLDER / f"{situation}-{width}x{height}.txt"


def main() -> None:
    """Draw all files again."""
    FOLDER.mkdir(exist_ok=True)
    for situation, make in SITUATIONS.items():
        for width, height in SIZES:
            text = draw(make(), width=width, height=height)
            file_of(situation, width=width, height=height).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
