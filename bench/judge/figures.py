"""The judge's figures, measured on a running site; needs the site's settings in the environment."""

import asyncio
import time

import msgspec
from asgiref.sync import sync_to_async
from django.utils import timezone

from bench.judge.crowd import RoundTimes, answer_round, await_opening, connected_crowd
from bench.judge.grading import POOL_SIZE, measure_grading
from bench.judge.history import measure_refresh
from bench.report import print_table
from bench.season import end_running_season, register
from bench.site import await_true
from judge.models import Counted, Round, Score, Season, Window
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier

NODES = 1_000
QUESTIONS = 16
_POLL_S = 0.02
_CLOSE_TIMEOUT_S = 120.0


def measure_judge(socket: str) -> dict[str, float]:
    """Return all figures of the judge by name, and print them. Ends running seasons first.

    `socket` is the URL of the socket that nodes connect to.
    """
    end_running_season()
    return {**measure_round(socket), **measure_graders(), **measure_refreshes()}


# ---- a round of a thousand nodes


def measure_round(socket: str) -> dict[str, float]:
    """Let NODES nodes submit at once and wait until they are ranked.

    Returns the seconds to close and rank the round, and the answers and seats per second.
    """
    season = Season.objects.create(
        name="bench",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=600,
        scoring_seconds=600,
    )
    start_season(season, now=timezone.now())
    tokens = register("bench", nodes=NODES)
    with Verifier() as verifier:
        times, close_s = asyncio.run(_run_round(socket, season, tokens, verifier))
    figures = {
        "close_seconds_1000x16": close_s,
        "answers_per_s": times.accepted / times.receiving_s,
        "seats_per_s": NODES / times.offering_s,
    }
    _print_round(times, close_s)
    return figures


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
    problem = f"round {judge_round.number} was not closed and ranked in time"
    await_true(counted.exists, problem, within_s=_CLOSE_TIMEOUT_S, poll_s=_POLL_S)
    scored = Score.objects.filter(round=judge_round, status=Score.Status.SCORED, n=QUESTIONS)
    assert scored.count() == NODES, f"{scored.count()} of {NODES} nodes were scored in full"


def _print_round(times: RoundTimes, close_s: float) -> None:
    steps = (
        ("questions offered", times.offering_s, NODES),
        ("answers stored and acknowledged", times.receiving_s, times.accepted),
        ("graded, closed and ranked", close_s, times.accepted),
    )
    print_table(
        f"A round of {NODES:,} nodes × {QUESTIONS} questions, all at once",
        ("step", "seconds", "per second"),
        [(step, f"{seconds:.2f}", f"{count / seconds:,.0f}") for step, seconds, count in steps],
    )


# ---- grading and ranking


def measure_graders() -> dict[str, float]:
    """Return how fast the sandboxed verifier and the bare scorer grade the same answers."""
    figures = measure_grading()
    scorers = (
        ("bare, in this process, one core", figures.bare_per_s, 1.0),
        ("sandboxed child, one core", figures.child_per_s, figures.ratio),
        (f"{POOL_SIZE} children, all cores", figures.pool_per_s, figures.pool_ratio),
    )
    print_table(
        "Grading, in the same run on the same answers",
        ("scorer", "answers/s", "ratio"),
        [(scorer, f"{rate:,.0f}", f"{ratio:.2f}") for scorer, rate, ratio in scorers],
    )
    return {
        "grading_ratio": figures.ratio,
        "graded_per_s": figures.child_per_s,
        "graded_per_s_pool": figures.pool_per_s,
    }


def measure_refreshes() -> dict[str, float]:
    """Time the leaderboard's refresh after one more round, for four sizes of history.

    Returns the seconds spent in the database for each size. For the last size, which has a target,
    the total seconds are also returned.
    """
    figures, rows = {}, []
    for nodes, rounds in ((1_000, 1), (1_000, 10), (1_000, 100), (10_000, 10)):
        refresh = measure_refresh(nodes=nodes, rounds=rounds, questions=10)
        seconds = (f"{refresh.database_s:.2f}", f"{refresh.total_s:.2f}")
        rows.append((f"{nodes:,}", f"{refresh.answers:,}", *seconds))
        figures[f"refresh_s_{nodes}_nodes_{refresh.answers}_answers"] = refresh.database_s
    figures["refresh_s_10k_nodes_1m_answers"] = refresh.database_s
    figures["refresh_total_s_10k_nodes_1m_answers"] = refresh.total_s
    headings = ("nodes", "answers in the table", "database s", "in all s")
    print_table("Refreshing the leaderboard after one more round", headings, rows, left=())
    return figures
