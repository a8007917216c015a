"""Closed rounds are searched for copies and jumps, and the arms compared; nothing else changes."""

from collections.abc import Iterable
from datetime import datetime

import numpy as np
import pytest

from judge.models import Answer, Comparison, Flag, Round, Score, Season, Seat
from judge.services.inspection import inspect_closed_rounds, inspect_round
from judge.services.oversight import dismiss_flag, void_round
from swarm_web.nodes.models import Node
from tests.judge.naive import kept_boards
from tests.judge.toys import Site, questions_of

QUESTIONS = 32
CROWD = 30


@pytest.fixture
def exam(site: Site) -> Site:
    """A season of long rounds."""
    Season.objects.update(questions_per_round=QUESTIONS)
    site.season.refresh_from_db()
    return site


def play_wrong(site: Site, texts: dict[str, list[str]], *, tagged: bool = True) -> Round:
    """Play a round in which everybody is wrong, each with own words."""
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
    site.end(judge_round)
    site.refresh()
    return judge_round


def draw_texts(names: Iterable[str], *, seed: int) -> dict[str, list[str]]:
    """Return for each node one of a dozen wrong answers to each question."""
    rng = np.random.default_rng(seed)
    return {name: [str(word) for word in rng.integers(12, size=QUESTIONS)] for name in names}


def make_crowd(site: Site) -> list[str]:
    names = [f"node-{i}" for i in range(CROWD)]
    site.join(*names, model="large")
    return names


def plant_copier(site: Site, names: list[str], *, seed: int = 1) -> Round:
    """Play a round in which the last node hands in what the first one did."""
    texts = draw_texts(names, seed=seed)
    texts[names[-1]] = texts[names[0]]
    return play_wrong(site, texts)


def copies() -> list[tuple[str, str]]:
    flags = Flag.objects.filter(kind=Flag.Kind.COPIED).order_by("pk")
    return list(flags.values_list("node__name", "other__name"))


def inspect(site: Site) -> list[Round]:
    return inspect_closed_rounds(now=site.clock.now)


# ---- copies


def test_a_copier_is_flagged_with_whom_it_copied_and_nobody_else(exam: Site) -> None:
    names = make_crowd(exam)
    judge_round = plant_copier(exam, names)
    inspect(exam)
    flag = Flag.objects.get()
    assert (flag.kind, flag.round, flag.state) == (Flag.Kind.COPIED, judge_round, Flag.State.OPEN)
    assert copies() == [(names[0], names[-1])]
    assert flag.p_adjusted < 0.001
    assert names[-1] in flag.text
    assert flag.created_at == exam.clock.now


def test_a_copier_is_flagged_once_also_when_its_round_is_inspected_twice(exam: Site) -> None:
    judge_round = plant_copier(exam, make_crowd(exam))
    for _ in range(2):
        inspect_round(judge_round, now=exam.clock.now)
    assert Flag.objects.count() == 1


def test_a_copier_that_goes_on_is_flagged_anew_only_after_the_flag_was_dismissed(
    exam: Site,
) -> None:
    names = make_crowd(exam)
    plant_copier(exam, names)
    inspect(exam)
    plant_copier(exam, names, seed=2)
    inspect(exam)
    assert len(copies()) == 1
    dismiss_flag(Flag.objects.get(), reason="one machine", actor=None, now=exam.clock.now)
    plant_copier(exam, names, seed=3)
    inspect(exam)
    assert copies() == 2 * [(names[0], names[-1])]


def test_a_copier_is_found_over_several_rounds_that_say_too_little_each(site: Site) -> None:
    Season.objects.update(questions_per_round=8)
    site.season.refresh_from_db()
    names = make_crowd(site)
    for seed in range(3):
        texts = {name: words[:8] for name, words in draw_texts(names, seed=seed).items()}
        texts[names[-1]] = texts[names[0]]
        play_wrong(site, texts)
        inspect(site)
        if seed == 0:
            assert copies() == []
    assert copies() == [(names[0], names[-1])]


def test_answers_without_tags_are_no_evidence(exam: Site) -> None:
    names = make_crowd(exam)
    texts = draw_texts(names, seed=1)
    texts[names[-1]] = texts[names[0]]
    play_wrong(exam, texts, tagged=False)
    inspect(exam)
    assert not Flag.objects.exists()


# ---- jumps


def play_scores(site: Site, **right: int) -> Round:
    return site.play(**{name: "r" * n + "w" * (QUESTIONS - n) for name, n in right.items()})


def test_a_node_that_jumps_is_flagged_and_a_steady_one_is_not(exam: Site) -> None:
    exam.join("jumper", "steady")
    for _ in range(4):
        play_scores(exam, jumper=3, steady=3)
    judge_round = play_scores(exam, jumper=QUESTIONS, steady=4)
    inspect(exam)
    flag = Flag.objects.get()
    assert (flag.kind, flag.round, flag.other) == (Flag.Kind.JUMPED, judge_round, None)
    assert flag.node == exam.nodes["jumper"]


def test_a_jump_is_flagged_once_also_when_its_round_is_inspected_twice(exam: Site) -> None:
    exam.join("jumper")
    for _ in range(4):
        play_scores(exam, jumper=3)
    judge_round = play_scores(exam, jumper=QUESTIONS)
    inspect(exam)
    inspect_round(judge_round, now=exam.clock.now)
    assert Flag.objects.count() == 1


def test_void_rounds_are_no_history_to_jump_from(exam: Site) -> None:
    exam.join("jumper")
    for _ in range(4):
        judge_round = play_scores(exam, jumper=3)
        void_round(judge_round, reason="?", actor=None, now=exam.clock.now)
    play_scores(exam, jumper=QUESTIONS)
    inspect(exam)
    assert not Flag.objects.exists()


# ---- the arms


def test_the_comparison_of_each_model_is_stored(site: Site) -> None:
    for model in ("small", "large"):
        site.join(f"{model}-swarm", model=model)
        site.join(f"{model}-alone", model=model, arm="isolated")
    site.join("bare", model="small", arm="base")
    for _ in range(3):
        site.play(**{name: "rrrr" if "swarm" in name else "wwww" for name in site.nodes})
        now = site.clock.advance(1)
        inspect(site)
    stored = {kept.model: (kept.claim, kept.updated_at) for kept in Comparison.objects.all()}
    assert set(stored) == {"small", "large"}
    claim, updated_at = stored["small"]
    assert (claim["n_swarm"], claim["n_isolated"], claim["difference"]) == (1, 1, 1.0)
    assert (claim["verdict"], updated_at) == ("too_few", now)


def test_a_comparison_of_a_model_that_is_gone_goes_too(site: Site) -> None:
    site.join("amber", model="old")
    site.play(amber="rrrr")
    inspect(site)
    Node.objects.update(model="new")
    site.play(amber="rrrr")
    inspect(site)
    assert [kept.model for kept in Comparison.objects.all()] == ["new"]


# ---- when, and what stays


def test_every_closed_round_is_inspected_once_and_says_when(site: Site) -> None:
    site.join("amber")
    rounds = [site.play(amber="rrrr") for _ in range(2)]
    assert inspect(site) == rounds
    assert inspect(site) == []
    assert times_inspected() == 2 * [site.clock.now]


def times_inspected() -> list[datetime | None]:
    return list(Round.objects.order_by("number").values_list("inspected_at", flat=True))


def test_rounds_that_are_not_closed_are_not_inspected(site: Site) -> None:
    site.join("amber")
    void_round(site.play(amber="rrrr"), reason="?", actor=None, now=site.clock.now)
    site.open("amber")
    assert inspect(site) == []


def test_a_round_that_nobody_sat_is_inspected(site: Site) -> None:
    judge_round = site.end(site.open())
    assert inspect(site) == [judge_round]
    assert not Seat.objects.exists()


def test_inspecting_changes_no_score_and_no_rank(exam: Site) -> None:
    plant_copier(exam, make_crowd(exam))
    before = (kept_boards(exam.season), list(Score.objects.order_by("pk").values()))
    inspect(exam)
    assert Flag.objects.exists()
    assert kept_boards(exam.season) == before[0]
    assert list(Score.objects.order_by("pk").values()) == before[1]
