"""A season asks no question twice, and is halted when it has none left."""

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Question, Round, Season
from judge.repeats import count_seen_before, numbers_before, read_asked, read_asked_rounds
from judge.services.oversight import void_round
from judge.services.scheduling import ensure_next_round, schedule_round
from judge.services.seasons import resume_season, start_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.asked import (
    NOTHING_ASKED,
    digest_question,
    entry_of,
    extend_chain,
    seal_of,
)
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.verifier import DrawnTask
from tests.judge.toys import QUESTIONS, Clock, Site, ToyVerifier, make_toy_season

pytestmark = pytest.mark.django_db


class FewQuestions(ToyVerifier):
    """A toy verifier with few questions, so that most candidates have soon been asked."""

    def __init__(self, size: int, *, callback: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.size = size
        self._callbacks = [callback] if callback else []

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        while self._callbacks:
            self._callbacks.pop()()
        index = keyed_index(key=key, part=part, dataset=dataset, counter=counter)
        spec = TaskSpec(dataset, config, seed, index, GENERATOR)
        return DrawnTask(spec, f"{dataset} {index % self.size}?")


def schedule(site: Site, clock: Clock, verifier: ToyVerifier) -> Round:
    clock.advance(60)
    opens_at = clock.now + timedelta(seconds=5)
    return schedule_round(site.season, opens_at=opens_at, now=clock.now, verifier=verifier)


def prompts(season: Season) -> list[str]:
    return list(Question.objects.filter(round__season=season).values_list("prompt", flat=True))


@pytest.mark.parametrize("size", [33, 60, 400])
@pytest.mark.parametrize("voided", [set(), {0, 4}, {9}])
def test_no_question_is_asked_twice_in_a_season(
    size: int, voided: set[int], site: Site, clock: Clock
) -> None:
    """Ten rounds ask thirty questions of one dataset, up to nine tenths of all."""
    few = FewQuestions(size)
    for number in range(10):
        judge_round = schedule(site, clock, few)
        if number in voided:
            void_round(judge_round, reason="test", actor=None, now=clock.now)
    asked = prompts(site.season)
    assert len(set(asked)) == len(asked) == 10 * QUESTIONS


def test_a_round_scheduled_during_drawing_shares_no_questions(site: Site, clock: Clock) -> None:
    few = FewQuestions(8, callback=lambda: schedule(site, clock, FewQuestions(8)))
    schedule(site, clock, few)
    assert Round.objects.count() == 2
    assert len(set(prompts(site.season))) == 2 * QUESTIONS


def test_another_season_may_ask_the_same_questions(site: Site, clock: Clock) -> None:
    judge_round = schedule(site, clock, FewQuestions(4))
    other = make_toy_season("Another")
    start_season(other, now=clock.now)
    again = schedule_round(other, opens_at=clock.now, now=clock.now, verifier=FewQuestions(4))
    assert sum(count_seen_before(each) for each in (judge_round, again)) == 0
    assert set(judge_round.digests) & set(again.digests)


def test_rounds_store_the_digests_of_their_questions(site: Site, clock: Clock) -> None:
    judge_round = schedule(site, clock, FewQuestions(100))
    asked = judge_round.questions.order_by("position").values_list("prompt", flat=True)
    assert Round.objects.get(pk=judge_round.pk).digests == [digest_question(text) for text in asked]


# ---- the chain


def test_a_round_commits_to_all_questions_asked_before_it(site: Site, clock: Clock) -> None:
    rounds = [schedule(site, clock, FewQuestions(100)) for _ in range(3)]
    void_round(rounds[1], reason="test", actor=None, now=clock.now)
    entries = [entry_of(r.digests, seal=seal_of(bytes(r.secret))) for r in rounds]
    for number, judge_round in enumerate(rounds):
        assert judge_round.rules["asked"] == extend_chain(NOTHING_ASKED, entries[:number])


def test_the_chain_starts_with_rounds_drawn_by_old_rules(site: Site, clock: Clock) -> None:
    old = [schedule(site, clock, FewQuestions(100)) for _ in range(2)]
    for judge_round in old:
        del judge_round.rules["asked"]
        judge_round.save()
    judge_round = schedule(site, clock, FewQuestions(100))
    entries = [entry_of(r.digests, seal=seal_of(bytes(r.secret))) for r in old]
    assert judge_round.rules["asked"] == extend_chain(NOTHING_ASKED, entries)


def test_sealed_rounds_reveal_only_their_entry(site: Site, clock: Clock) -> None:
    first, second, last = [schedule(site, clock, FewQuestions(100)) for _ in range(3)]
    void_round(first, reason="test", actor=None, now=clock.now)
    revealed, sealed = read_asked_rounds(numbers_before(last))
    assert (revealed.number, list(revealed.digests)) == (first.number, first.digests)
    assert (sealed.number, sealed.seal, sealed.digests) == (second.number, None, ())
    assert sealed.entry == entry_of(second.digests, seal=seal_of(bytes(second.secret)))


def test_repeats_of_old_rounds_are_counted(site: Site, clock: Clock) -> None:
    first, second = [schedule(site, clock, FewQuestions(100)) for _ in range(2)]
    second.digests = [second.digests[0], *first.digests[:2], second.digests[0]]
    second.save()
    assert (count_seen_before(first), count_seen_before(second)) == (0, 3)


def test_asked_questions_are_found_with_a_constant_number_of_queries(
    site: Site, clock: Clock
) -> None:
    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            read_asked(site.season).seen([1, 2, 3])
        return len(queries)

    schedule(site, clock, FewQuestions(1000))
    before = count_queries()
    for _ in range(5):
        schedule(site, clock, FewQuestions(1000))
    assert count_queries() == before == 2


# ---- no question left


def use_up(site: Site, clock: Clock, few: FewQuestions) -> None:
    schedule(site, clock, few)
    schedule(site, clock, few)
    with pytest.raises(RefusedError) as caught:
        schedule(site, clock, few)
    assert caught.value.code is ErrorCode.TASK_EXHAUSTED
    assert "chain_sum" in caught.value.message


def test_a_season_without_questions_is_paused_with_a_reason(site: Site, clock: Clock) -> None:
    few = FewQuestions(7)
    use_up(site, clock, few)
    Round.objects.update(phase=Round.Phase.VOID)
    assert ensure_next_round(site.season, now=clock.now, verifier=few) is None
    season = Season.objects.get(pk=site.season.pk)
    assert season.paused
    assert season.halt_reason.startswith("task.exhausted: chain_sum has too few questions left")
    assert "Start another season" in season.halt_reason


def test_a_halted_season_draws_again_when_it_is_resumed(site: Site, clock: Clock) -> None:
    few = FewQuestions(7)
    use_up(site, clock, few)
    Round.objects.update(phase=Round.Phase.VOID)
    ensure_next_round(site.season, now=clock.now, verifier=few)
    assert resume_season(site.season)
    season = Season.objects.get(pk=site.season.pk)
    assert season.halt_reason == ""
    assert ensure_next_round(season, now=clock.now, verifier=FewQuestions(1000)) is not None


def test_other_errors_do_not_pause_the_season(site: Site, clock: Clock) -> None:
    class Broken(ToyVerifier):
        def draw(self, **_: object) -> DrawnTask:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "no memory")

    with pytest.raises(RefusedError, match="no memory"):
        ensure_next_round(site.season, now=clock.now, verifier=Broken())
    assert not Season.objects.get(pk=site.season.pk).paused


def test_stored_rules_are_the_committed_ones(site: Site, clock: Clock) -> None:
    judge_round = schedule(site, clock, FewQuestions(100))
    assert msgspec.json.decode(msgspec.json.encode(judge_round.rules)) == judge_round.rules
    assert judge_round.rules["format"] == "murmuration-quiz-3"
