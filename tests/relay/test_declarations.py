"""Declarations: checked by the real verifier; those of nodes that declare falsely lapse."""

import itertools
from collections.abc import Callable

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from judge.services.seasons import end_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Completion, Rollout, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import DrawnTask, Verifier
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from swarm_web.relay.services.declarations import check_declarations, restore_declarations
from swarm_web.relay.services.scoring import check_rollout
from swarm_web.relay.trust import WINDOW
from tests.factories import make_rollout
from tests.relay.sharing import (
    draw_task,
    offer_checks,
    publish_rollouts,
    read_findings,
    sample_rollouts,
)
from tests.tasks.specs import answered, solve_sum

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


def rollout_of(season: Season, task: DrawnTask, answers: str, *, name: str = "r") -> Rollout:
    """Return a rollout with an answer per letter: `r` is right, `w` is wrong."""
    texts = {"r": answered(solve_sum(task.question)), "w": answered("0.5")}
    completions = [Completion(texts[letter], "stop") for letter in answers]
    base = make_rollout(season, rollout_id=name)
    return msgspec.structs.replace(base, task=task.spec, completions=completions)


class FailingVerifier(Verifier):
    """A verifier that fails for the whole task, or times out on an answer."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self._fails = fails

    def question(self, spec: TaskSpec) -> str:
        if self._fails:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "the child is gone")
        questions = (f"{number} + 1?" for number in itertools.count())
        return next(text for text in questions if question_part(text) is Part.TRAINING)

    def score(self, spec: TaskSpec, texts: object, *, rules: object = None) -> list[Verdict]:
        return [Verdict(1.0, "right"), Verdict(0.0, "timeout")]


# ---- what counts as informative


def is_informative(rollout: Rollout, *, rules: AnswerRules, verifier: Verifier) -> bool | None:
    checked = check_rollout(rollout, rules=rules, verifier=verifier)
    return None if checked is None else checked.informative


@pytest.mark.parametrize(
    ("answers", "informative"), [("rw", True), ("wwrw", True), ("rr", False), ("ww", False)]
)
async def test_rollout_is_informative_if_answers_are_right_and_wrong(
    season: Season, verifier: Verifier, answers: str, informative: bool
) -> None:
    rollout = rollout_of(season, draw_task(verifier, season), answers)
    assert is_informative(rollout, rules=AnswerRules.EXACT, verifier=verifier) is informative


async def test_rollout_with_partial_credit_only_is_not_informative(
    season: Season, verifier: Verifier
) -> None:
    task = draw_task(verifier, season)
    rollout = rollout_of(season, task, "ww")
    vague = Completion(answered(f"{solve_sum(task.question)} or so"), "stop")
    mixed = msgspec.structs.replace(rollout, completions=[rollout.completions[0], vague])
    first, second = verifier.score(task.spec, [each.text for each in mixed.completions])
    assert first.score != second.score
    assert is_informative(mixed, rules=AnswerRules.EXACT, verifier=verifier) is False


async def test_rollout_with_a_question_of_the_judge_is_not_informative(
    season: Season, verifier: Verifier
) -> None:
    rollout = rollout_of(season, draw_task(verifier, season, part=Part.JUDGE), "rw")
    assert is_informative(rollout, rules=AnswerRules.EXACT, verifier=verifier) is False


async def test_rollout_on_which_the_verifier_hangs_is_not_informative(season: Season) -> None:
    assert (
        is_informative(
            make_rollout(season), rules=AnswerRules.EXACT, verifier=FailingVerifier(fails=False)
        )
        is False
    )


async def test_rollout_whose_question_cannot_be_generated_is_not_informative(
    season: Season, verifier: Verifier
) -> None:
    task = TaskSpec("maze", {}, 20250911, 714_733_159, GENERATOR)
    rollout = msgspec.structs.replace(make_rollout(season), task=task)
    assert is_informative(rollout, rules=AnswerRules.EXACT, verifier=verifier) is False


async def test_failed_verifier_gives_no_result(season: Season) -> None:
    assert (
        is_informative(
            make_rollout(season), rules=AnswerRules.EXACT, verifier=FailingVerifier(fails=True)
        )
        is None
    )


# ---- consequences


async def declare(
    node: Node, season: Season, verifier: Verifier, answers: str, *, count: int, first: int = 0
) -> None:
    """Publish rollouts of one question, all declared informative."""
    task = draw_task(verifier, season)
    rollouts = [
        rollout_of(season, task, answers, name=f"r{place}") for place in range(first, first + count)
    ]
    await publish_rollouts(
        node,
        season_id=season.pk,
        rollouts=rollouts,
        informative=[rollout.id for rollout in rollouts],
        now=NOW,
    )


async def check(
    season: Season,
    verifier: Verifier,
    *,
    limit: int = 64,
    is_late: Callable[[], bool] = lambda: False,
) -> int:
    """Offer rollouts, check some as the worker does, and read the findings."""
    await offer_checks(season.pk, 64, now=NOW)
    checked = await sync_to_async(check_declarations)(
        verifier=verifier, now=NOW, limit=limit, is_late=is_late
    )
    await read_findings(season.pk)
    return checked


async def draw_informative(node: Node, season: Season, *, count: int) -> list[str]:
    """Draw with the strategy `informative` and return the rollouts' nodes."""
    drawn = await sample_rollouts(
        node,
        season_id=season.pk,
        count=count,
        prefer="informative",
        now=NOW,
    )
    return [external.node for external in drawn]


async def part_of(node: Node) -> Contribution:
    return await Contribution.objects.aget(node=node)


async def test_checks_left_when_the_time_is_over_are_not_counted(
    season: Season, verifier: Verifier, amber: Node
) -> None:
    await declare(amber, season, verifier, "ww", count=8)
    clock = iter([False, False, True])
    await check(season, verifier, is_late=lambda: next(clock))
    row = await Contribution.objects.aget(node=amber, season=season)
    assert (row.declared_checked, row.declared_false) == (2, 2)


async def test_true_declarations_are_counted_and_do_not_lapse(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    await declare(amber, season, verifier, "rw", count=6)
    assert await check(season, verifier) == 6
    part = await part_of(amber)
    assert (part.declared_checked, part.declared_false) == (6, 0)
    assert (part.window_checked, part.declarations_lapsed_at) == (6, None)
    assert await draw_informative(bold, season, count=2) == ["amber", "amber"]


async def test_rollout_is_checked_once(season: Season, amber: Node, verifier: Verifier) -> None:
    await declare(amber, season, verifier, "rr", count=1)
    for _ in range(4):
        await check(season, verifier)
    assert (await part_of(amber)).declared_checked == 1


async def test_number_of_checks_is_limited(season: Season, amber: Node, verifier: Verifier) -> None:
    await declare(amber, season, verifier, "rw", count=9)
    assert await check(season, verifier, limit=2) == 2
    assert (await part_of(amber)).declared_checked == 2


async def test_declarations_of_a_node_that_declares_falsely_lapse(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    honest = await Node.objects.acreate(name="honest")
    await declare(amber, season, verifier, "ww", count=20)
    await declare(honest, season, verifier, "rw", count=2)
    await check(season, verifier)
    part = await part_of(amber)
    assert (part.declared_checked, part.declared_false) == (20, 20)
    assert part.declarations_lapsed_at == NOW
    assert (await part_of(honest)).declarations_lapsed_at is None
    assert await draw_informative(bold, season, count=2) == ["honest", "honest"]
    other, third = [
        await Node.objects.acreate(name=name, token_hash=name) for name in ("other", "third")
    ]
    # Its later declarations are ignored too, but its rollouts are still delivered.
    await declare(amber, season, verifier, "ww", count=5, first=20)
    assert await draw_informative(other, season, count=2) == ["honest", "honest"]
    assert len(await draw_informative(third, season, count=64)) == 27


async def test_declarations_are_restored_after_a_clean_window(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    await declare(amber, season, verifier, "ww", count=3)
    await check(season, verifier)
    assert (await part_of(amber)).declarations_lapsed_at == NOW
    await declare(amber, season, verifier, "rw", count=WINDOW - 1, first=3)
    await check(season, verifier)
    assert (await part_of(amber)).declarations_lapsed_at == NOW
    await declare(amber, season, verifier, "rw", count=1, first=WINDOW + 2)
    await check(season, verifier)
    assert (await part_of(amber)).declarations_lapsed_at is None


async def test_declarations_are_restored_by_an_operator(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    await declare(amber, season, verifier, "ww", count=3)
    await check(season, verifier)
    assert await sync_to_async(restore_declarations)(Contribution.objects.all()) == 1
    await check(season, verifier)
    await declare(amber, season, verifier, "rw", count=1, first=3)
    part = await part_of(amber)
    assert (part.declarations_lapsed_at, part.window_checked, part.declared_false) == (None, 0, 3)
    await declare(bold, season, verifier, "rw", count=9)
    other = await Node.objects.acreate(name="other")
    assert "amber" in await draw_informative(other, season, count=10)


async def test_lapsed_nodes_are_restored_after_redis_lost_them(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    await Contribution.objects.acreate(node=amber, season=season, declarations_lapsed_at=NOW)
    await check(season, verifier)
    await declare(amber, season, verifier, "rw", count=4)
    honest = await Node.objects.acreate(name="honest")
    await declare(honest, season, verifier, "rw", count=1)
    assert (await draw_informative(bold, season, count=5))[0] == "honest"


async def test_failed_check_is_not_counted(season: Season, amber: Node, verifier: Verifier) -> None:
    await declare(amber, season, verifier, "ww", count=3)
    await check(season, FailingVerifier(fails=True))
    assert (await part_of(amber)).declared_checked == 0


async def test_rollouts_of_an_ended_season_are_not_checked(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    await declare(amber, season, verifier, "ww", count=3)
    await sync_to_async(end_season)(season, now=NOW)
    assert await check(season, verifier) == 0


async def test_checks_of_a_deleted_nodes_rollouts_do_not_fail(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    await declare(amber, season, verifier, "ww", count=3)
    await Contribution.objects.acreate(node=await Node.objects.acreate(name="other"), season=season)
    await amber.adelete()
    assert await check(season, verifier) == 3
