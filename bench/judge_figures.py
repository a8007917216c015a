"""The judge's figures, measured on a running site; needs its settings in the environment."""

import asyncio
import secrets
import time

import msgspec
from asgiref.sync import sync_to_async
from django.utils import timezone
from rich.console import Console
from rich.table import Table

from bench.crowd import RoundTimes, answer_round, await_opening, connected_crowd
from bench.grading import measure_grading
from bench.history import measure_refresh
from judge.models import Counted, Round, Score, Season, Window
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import end_season, start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import hash_token

NODES = 1_000
QUESTIONS = 16
_POLL_S = 0.02
_CLOSE_TIMEOUT_S = 120.0


def measure_judge(socket: str) -> dict[str, float]:
    """Return all figures of the judge, by name, and print each part. Ends running seasons first.

    `socket` is the URL of the site's node socket.
    """
    for demo in Season.objects.filter(state=Season.State.RUNNING):
        end_season(demo, now=timezone.now())
    return {**measure_round(socket), **measure_graders(), **measure_refreshes()}


# ---- a round of a thousand nodes


def measure_round(socket: str) -> dict[str, float]:
    """Let NODES nodes submit at once, wait until they are ranked, and return the figures."""
    season = Season.objects.create(
        name="bench",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=600,
        scoring_seconds=600,
    )
    start_season(season, now=timezone.now())
    tokens = _register(NODES)
    with Verifier() as verifier:
        times, close_s = asyncio.run(_run_round(socket, season, tokens, verifier))
    figures = {
        "close_seconds_1000x16": close_s,
        "answers_per_s": times.accepted / times.receiving_s,
        "seats_per_s": NODES / times.offering_s,
    }
    _print_round(times, close_s)
    return figures


def _register(count: int) -> list[str]:
    """Create `count` nodes and return their tokens."""
    tokens = [secrets.token_urlsafe(32) for _ in range(count)]
    Node.objects.bulk_create(
        Node(name=f"bench-{i}", token_hash=hash_token(token)) for i, token in enumerate(tokens)
    )
    return tokens


async def _run_round(
    socket: str, season: Season, tokens: list[str], verifier: Verifier
) -> tuple[RoundTimes, float]:
    async with connected_crowd(socket, tokens) as members:
        judge_round = await sync_to_async(_schedule)(season, verifier)
        await await_opening(members[0], judge_round.number)
        times = await answer_round(members, judge_round.number)
        start = time.perf_counter()
        await sync_to_async(_await_ranking)(judge_round)
        return times, time.perf_counter() - start


def _schedule(season: Season, verifier: Verifier) -> Round:
    now = timezone.now()
    return schedule_round(season, opens_at=now + LEAD_TIME, now=now, verifier=verifier)


def _await_ranking(judge_round: Round) -> None:
    """Wait until the round is closed and its scores are in the season's standings.

    Raises TimeoutError after two minutes.
    """
    counted = Counted.objects.filter(
        round=judge_round, window=Window.SEASON, round__phase=Round.Phase.CLOSED
    )
    deadline = time.monotonic() + _CLOSE_TIMEOUT_S
    while not counted.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"round {judge_round.number} was not closed and ranked in time")
        time.sleep(_POLL_S)
    scored = Score.objects.filter(round=judge_round, status=Score.Status.SCORED, n=QUESTIONS)
    assert scored.count() == NODES, f"{scored.count()} of {NODES} nodes were scored in full"


def _print_round(times: RoundTimes, close_s: float) -> None:
    table = Table(title=f"A round of {NODES:,} nodes × {QUESTIONS} questions, all at once")
    for heading in ("step", "seconds", "per second"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for step, seconds, count in (
        ("questions offered", times.offering_s, NODES),
        ("answers stored and acknowledged", times.receiving_s, times.accepted),
        ("graded, closed and ranked", close_s, times.accepted),
    ):
        table.add_row(step, f"{seconds:.2f}", f"{count / seconds:,.0f}")
    Console().print(table)


# ---- grading and ranking


def measure_graders() -> dict[str, float]:
    """Compare the sandboxed verifier with the bare scorer on the same answers."""
    figures = measure_grading()
    table = Table(title="Grading, in the same run on the same answers")
    for heading in ("scorer", "answers/s", "ratio"):
        table.add_column(heading, justify="left" if heading == "scorer" else "right")
    table.add_row("bare, in this process, one core", f"{figures.bare_per_s:,.0f}", "1")
    table.add_row(
        "sandboxed child, one core", f"{figures.child_per_s:,.0f}", f"{figures.ratio:.2f}"
    )
    children = f"{figures.pool_size} children, all cores"
    table.add_row(children, f"{figures.pool_per_s:,.0f}", f"{figures.pool_ratio:.2f}")
    Console().print(table)
    return {
        "grading_ratio": figures.ratio,
        "graded_per_s": figures.child_per_s,
        "graded_per_s_pool": figures.pool_per_s,
    }


def measure_refreshes() -> dict[str, float]:
    """Time the leaderboard's refresh after one more round, for four sizes of history.

    Returns the seconds by name; those of the last size are also targets.
    """
    table = Table(title="Refreshing the leaderboard after one more round")
    for heading in ("nodes", "answers in the table", "database s", "in all s"):
        table.add_column(heading, justify="right")
    figures = {}
    for nodes, rounds in ((1_000, 1), (1_000, 10), (1_000, 100), (10_000, 10)):
        refresh = measure_refresh(nodes=nodes, rounds=rounds, questions=10)
        table.add_row(
            f"{nodes:,}",
            f"{refresh.answers:,}",
            f"{refresh.database_s:.2f}",
            f"{refresh.total_s:.2f}",
        )
        figures[f"refresh_s_{nodes}_nodes_{refresh.answers}_answers"] = refresh.database_s
    figures["refresh_s_10k_nodes_1m_answers"] = refresh.database_s
    figures["refresh_total_s_10k_nodes_1m_answers"] = refresh.total_s
    Console().print(table)
    return figures
