"""Closed rounds are searched for nodes that submit another node's answers."""

from collections.abc import Iterable

import numpy as np
import pytest

from judge.models import Answer, Flag, Round, Score
from judge.services.inspection import inspect_closed_rounds, inspect_round
from judge.services.oversight import dismiss_flag
from tests.judge.boards import change_rules
from tests.judge.naive import stored_boards
from tests.judge.toys import Clock, Site, questions_of

QUESTIONS = 32
CROWD = 30
SOURCE, COPIER = "node-0", f"node-{CROWD - 1}"


def play_wrong(site: Site, texts: dict[str, list[str]], *, tagged: bool = True) -> Round:
    """Play a round in which every node gives its own wrong answers."""
    judge_round = site.open(*texts)
    site.sit(judge_round, *texts)
    Answer.objects.bulk_create(
        Answer(
            question=question,
            node=site.nodes[name],
            text=f"<answer>{text}</answer>" if tagged else text,
            finish_reason="stop",
            received_at=site.clock.now,
        )
        for name, words in texts.items()
        for question, text in zip(questions_of(judge_round), words, strict=True)
    )
    return site.end(judge_round)


def draw_texts(names: Iterable[str], *, seed: int) -> dict[str, list[str]]:
    """Return, for each node, one of a dozen wrong answers to each question."""
    rng = np.random.default_rng(seed)
    return {name: [str(word) for word in rng.integers(12, size=QUESTIONS)] for name in names}


def plant_copier(site: Site, *, seed: int) -> Round:
    """Play a round in which the last node submits the first one's answers."""
    texts = draw_texts(site.nodes, seed=seed)
    texts[COPIER] = texts[SOURCE]
    return play_wrong(site, texts)


@pytest.fixture(scope="module")
def crowd(module_rows: None) -> Site:
    """A season of long rounds with many nodes."""
    site = Site.start(Clock())
    change_rules(site, questions_per_round=QUESTIONS)
    site.join(*(f"node-{i}" for i in range(CROWD)), model="large")
    return site


@pytest.fixture
def exam(crowd: Site, db: None) -> Site:
    return crowd.copy()


def copies() -> list[tuple[str, str]]:
    flags = Flag.objects.filter(kind=Flag.Kind.COPIED).order_by("pk")
    return list(flags.values_list("node__name", "other__name"))


def inspect(site: Site) -> list[Round]:
    return inspect_closed_rounds(now=site.clock.now)


@pytest.mark.slow
def test_only_the_copier_and_its_source_are_flagged(exam: Site) -> None:
    judge_round = plant_copier(exam, seed=1)
    inspect(exam)
    flag = Flag.objects.get()
    assert (flag.kind, flag.round, flag.state) == (Flag.Kind.COPIED, judge_round, Flag.State.OPEN)
    assert copies() == [(SOURCE, COPIER)]
    assert flag.p_adjusted < 0.001
    assert COPIER in flag.text
    assert flag.created_at == exam.clock.now


@pytest.mark.slow
def test_a_copier_is_flagged_once_even_if_its_round_is_inspected_twice(exam: Site) -> None:
    judge_round = plant_copier(exam, seed=1)
    for _ in range(2):
        inspect_round(judge_round, now=exam.clock.now)
    assert Flag.objects.count() == 1


@pytest.mark.slow
def test_a_persistent_copier_is_flagged_again_only_after_the_flag_was_dismissed(
    exam: Site,
) -> None:
    plant_copier(exam, seed=1)
    inspect(exam)
    plant_copier(exam, seed=2)
    inspect(exam)
    assert len(copies()) == 1
    dismiss_flag(Flag.objects.get(), reason="one machine", actor=None, now=exam.clock.now)
    plant_copier(exam, seed=3)
    inspect(exam)
    assert copies() == 2 * [(SOURCE, COPIER)]


@pytest.mark.slow
def test_a_copier_is_found_over_several_rounds_that_are_inconclusive_alone(exam: Site) -> None:
    change_rules(exam, questions_per_round=8)
    for seed in range(3):
        texts = {name: words[:8] for name, words in draw_texts(exam.nodes, seed=seed).items()}
        texts[COPIER] = texts[SOURCE]
        play_wrong(exam, texts)
        inspect(exam)
        if seed == 0:
            assert copies() == []
    assert copies() == [(SOURCE, COPIER)]


@pytest.mark.slow
def test_answers_without_tags_are_no_evidence(exam: Site) -> None:
    texts = draw_texts(exam.nodes, seed=1)
    texts[COPIER] = texts[SOURCE]
    play_wrong(exam, texts, tagged=False)
    inspect(exam)
    assert not Flag.objects.exists()


@pytest.mark.slow
def test_a_copier_that_writes_tags_in_upper_case_and_answers_in_bold_is_flagged(
    exam: Site,
) -> None:
    texts = draw_texts(exam.nodes, seed=1)
    tagged = {name: [f"<answer>{word}</answer>" for word in words] for name, words in texts.items()}
    tagged[COPIER] = [f"<ANSWER>**{word}**</Answer>" for word in texts[SOURCE]]
    play_wrong(exam, tagged, tagged=False)
    inspect(exam)
    assert copies() == [(SOURCE, COPIER)]


@pytest.mark.slow
def test_inspecting_changes_no_score_and_no_rank(exam: Site) -> None:
    plant_copier(exam, seed=1)
    exam.refresh()
    before = (stored_boards(exam.season), list(Score.objects.order_by("pk").values()))
    inspect(exam)
    assert Flag.objects.exists()
    assert stored_boards(exam.season) == before[0]
    assert list(Score.objects.order_by("pk").values()) == before[1]
