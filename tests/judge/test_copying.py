"""Detection of copied answers: which nodes are found and which are not."""

from collections.abc import Iterable

import numpy as np
import pytest

from judge.statistics.copying import CopyFinding, WrongAnswer, find_copies

COMMON = 50


def draw_round(
    seed: int, *, nodes: int, questions: int, models: int = 4, wrong: float = 0.9
) -> list[WrongAnswer]:
    """Return the wrong answers of independent nodes, in two of five cases their model's own.

    Wrong answers are common as Zipf's law has it: the first of 50 is given by some 22 %.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, COMMON + 1)
    weights /= weights.sum()
    own = rng.choice(COMMON, size=(models, questions), p=weights)
    drawn = rng.choice(COMMON, size=(nodes, questions), p=weights)
    answers = np.where(rng.random(drawn.shape) < 0.4, own[np.arange(nodes) % models], drawn)
    return [
        WrongAnswer(question, node, f"model-{node % models}", f"{question}: {answer}")
        for (node, question), answer in np.ndenumerate(answers)
        if rng.random() < wrong
    ]


def copy_answers(answers: list[WrongAnswer], *, source: int, to: set[int]) -> list[WrongAnswer]:
    """Return the answers with those of some nodes replaced by the source's."""
    models = {answer.node: answer.model for answer in answers}
    others = [answer for answer in answers if answer.node not in to]
    copied = [answer for answer in answers if answer.node == source]
    return others + [a._replace(node=node, model=models[node]) for node in to for a in copied]


def answer_alike(nodes: Iterable[int], *, model: str, questions: int = 16) -> list[WrongAnswer]:
    """Return equal wrong answers of nodes of one model."""
    return [WrongAnswer(q, node, model, f"{model} {q}") for node in nodes for q in range(questions)]


def pairs_of(findings: Iterable[CopyFinding]) -> set[tuple[int, int]]:
    return {(finding.first, finding.second) for finding in findings}


@pytest.mark.parametrize("copier", [46, 47], ids=["same-model", "other-model"])
def test_only_the_node_that_copies_is_found(copier: int) -> None:
    answers = draw_round(1, nodes=60, questions=32)
    findings = find_copies(copy_answers(answers, source=2, to={copier}))
    assert pairs_of(findings) == {(2, copier)}
    assert findings[0].same_model == (copier == 46)
    assert findings[0].matches == findings[0].both_wrong > 2 * findings[0].expected


def test_a_node_that_copies_most_answers_is_found() -> None:
    answers = draw_round(2, nodes=60, questions=64)
    copied = copy_answers(answers, source=2, to={47})
    honest = {a.question: a for a in answers if a.node == 47}
    mixed = [
        honest.get(a.question, a) if a.node == 47 and a.question % 8 == 0 else a for a in copied
    ]
    findings = find_copies(mixed)
    assert pairs_of(findings) == {(2, 47)}
    assert findings[0].matches < findings[0].both_wrong


def test_exactly_the_members_of_a_ring_are_found() -> None:
    ring = set(range(5, 95, 3))
    answers = draw_round(3, nodes=100, questions=64)
    findings = find_copies(copy_answers(answers, source=5, to=ring - {5}))
    assert {node for pair in pairs_of(findings) for node in pair} == ring


def test_a_copier_is_not_paired_with_other_nodes_of_its_sources_model() -> None:
    # 40 nodes of a model answer alike on four of five questions; a node of another copies one.
    deviates = np.random.default_rng(4).random((40, 64)) < 0.2
    habit = [
        a._replace(text=f"{a.node} {a.question}") if deviates[a.node - 100, a.question] else a
        for a in answer_alike(range(100, 140), model="habit", questions=64)
    ]
    answers = draw_round(4, nodes=100, questions=64) + habit
    assert pairs_of(find_copies(copy_answers(answers, source=100, to={1}))) == {(1, 100)}


@pytest.mark.slow
def test_independent_nodes_are_not_flagged() -> None:
    rounds = [draw_round(seed, nodes=40, questions=20, wrong=0.7) for seed in range(200)]
    flagged = sum(bool(find_copies(answers)) for answers in rounds)
    assert flagged / len(rounds) <= 0.01


def test_nodes_of_one_model_that_answer_alike_are_not_flagged() -> None:
    # New nodes with equal weights; the other nodes of their model are the witnesses.
    others = draw_round(5, nodes=40, questions=256)
    fresh = answer_alike(range(100, 105), model="fresh", questions=256)
    assert not find_copies(others + fresh)


def test_twins_of_one_model_need_witnesses_of_that_model() -> None:
    others = draw_round(6, nodes=40, questions=16)
    twins = answer_alike([100, 101], model="rare")
    witnesses = [
        WrongAnswer(question, node, "rare", f"{node} {question}")
        for node in (102, 103, 104)
        for question in range(16)
    ]
    assert not find_copies(others + twins)
    assert not find_copies(others + twins + [a for a in witnesses if a.node != 104])
    assert pairs_of(find_copies(others + twins + witnesses)) == {(100, 101)}


def test_a_pair_in_a_round_of_few_nodes_is_not_tested() -> None:
    twins = answer_alike([1], model="a", questions=64) + [
        a._replace(model="b") for a in answer_alike([2], model="a", questions=64)
    ]
    others = [WrongAnswer(q, node, "c", f"{node} {q}") for node in (3, 4) for q in range(64)]
    assert not find_copies(twins + others)


def test_an_answer_that_all_nodes_give_is_no_evidence() -> None:
    nodes = [answer_alike([node], model="any", questions=256) for node in range(6)]
    answers = [a._replace(model=f"model-{a.node}") for node in nodes for a in node]
    assert not find_copies(answers)


def test_a_collapsed_models_only_answer_is_no_evidence() -> None:
    others = draw_round(7, nodes=40, questions=32)
    collapsed = [
        WrongAnswer(question, node, f"model-{node % 4}", "0")
        for node in (100, 101)
        for question in range(32)
    ]
    assert not find_copies(others + collapsed)


def test_empty_answers_are_no_evidence() -> None:
    answers = copy_answers(draw_round(8, nodes=60, questions=64), source=2, to={47})
    silent = [a._replace(text=" \n") if a.question < 16 else a for a in answers]
    (finding,) = find_copies(silent)
    assert finding.matches == finding.both_wrong
    assert finding.both_wrong == sum(a.node == 2 and a.question >= 16 for a in answers)


def test_a_copier_with_its_own_model_name_is_found() -> None:
    answers = copy_answers(draw_round(1, nodes=60, questions=32), source=2, to={47})
    renamed = [a._replace(model=f"own-{a.node}") if a.node in (2, 47) else a for a in answers]
    assert pairs_of(find_copies(renamed)) == {(2, 47)}


def test_case_and_white_space_are_ignored() -> None:
    answers = copy_answers(draw_round(9, nodes=60, questions=32), source=2, to={47})
    disguised = [
        a._replace(text=f" Item\t{a.text.upper()}\n" if a.node == 47 else f"item  {a.text}")
        for a in answers
    ]
    assert pairs_of(find_copies(disguised)) == {(2, 47)}


def test_p_values_are_adjusted_over_all_pairs_of_the_round() -> None:
    # No other nodes share a text, so this pair is the only one tested.
    twins = answer_alike([100, 101], model="any")
    others = [WrongAnswer(q, node, "any", f"{node} {q}") for node in range(40) for q in range(16)]
    (finding,) = find_copies(twins + others)
    assert finding.pairs == 42 * 41 // 2
    assert finding.p_adjusted == pytest.approx(finding.p_value * finding.pairs, abs=0)


def test_a_round_without_wrong_answers_has_no_findings() -> None:
    assert find_copies([]) == []


def test_a_finding_describes_its_figures_in_a_sentence() -> None:
    finding = CopyFinding(3, 8, 14, 15, 1.23, 2e-15, 3.4e-12, 1770, same_model=False)
    assert finding.describe("amber-fox") == (
        "14 of 15 wrong answers in common with amber-fox; 1.2 expected by chance "
        "(p = 3e-12 after Holm's adjustment over 1,770 pairs)"
    )
    of_model = CopyFinding(3, 8, 14, 15, 1.23, 2e-15, 3.4e-12, 1770, same_model=True)
    assert "1.2 expected by chance even among nodes of their model (p" in of_model.describe("x")
