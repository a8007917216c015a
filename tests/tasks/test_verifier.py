"""Questions and scores of the verifier."""

import msgspec
import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import MAX_COMPLETION_CHARS, Config, TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR, allowed_datasets
from swarm_tasks.generation_errors import GenerationError, NoQuestionError
from swarm_tasks.keyspace import Part, index_part, keyed_index, question_part
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import DRAW_ATTEMPTS, DrawnTask, StreamPosition, Verifier
from tests.tasks.specs import ONE_DIGIT, SEED, answered, make_spec, solve_sum


def draw(
    verifier: Verifier,
    *,
    part: Part = Part.TRAINING,
    dataset: str = "chain_sum",
    config: Config | None = None,
    counter: int = 0,
) -> DrawnTask:
    return verifier.draw(
        key=b"key",
        part=part,
        dataset=dataset,
        config=ONE_DIGIT if config is None else config,
        seed=SEED,
        counter=counter,
    )


# Few questions are held out, so all attempts of a first request fail for some of them.
@pytest.mark.parametrize("part", [Part.TRAINING, Part.HELD_OUT])
def test_draw_many_gives_the_same_tasks_as_single_draws(verifier: Verifier, part: Part) -> None:
    config: Config = {"min_terms": 2, "max_terms": 3}
    positions = [StreamPosition("chain_sum", config, counter) for counter in range(150)]
    positions.append(StreamPosition("gcd", {}, 3))
    drawn = verifier.draw_many(positions, key=b"key", part=part, seed=SEED)
    one_by_one = [
        draw(verifier, part=part, config=config, counter=counter) for counter in range(150)
    ]
    assert drawn == [*one_by_one, draw(verifier, part=part, dataset="gcd", config={}, counter=3)]


def test_task_that_cannot_be_made_does_not_affect_others_of_a_batch(verifier: Verifier) -> None:
    tasks = verifier.draw_many(
        [
            StreamPosition("chain_sum", ONE_DIGIT, 0),
            StreamPosition(UNGENERATED.dataset, {}, UNGENERATED_COUNTER),
        ],
        key=UNGENERATED_KEY,
        part=Part.TRAINING,
        seed=UNGENERATED.seed,
    )
    assert [task.spec.dataset for task in tasks] == ["chain_sum", "maze"]


# The generator raises at this index, the first attempt of the stream's 5,801st task.
UNGENERATED = TaskSpec("maze", {}, 20250911, 714_733_159, GENERATOR)
UNGENERATED_KEY, UNGENERATED_COUNTER = b"k", 5801


def test_task_that_cannot_be_made_raises_unmade_error(verifier: Verifier) -> None:
    for ask in (verifier.question, lambda spec: verifier.score(spec, ["1"])):
        with pytest.raises(GenerationError, match="Could not find suitable path"):
            ask(UNGENERATED)


def test_questions_of_many_specs_equal_those_of_single_specs(verifier: Verifier) -> None:
    specs = [make_spec(index=index) for index in range(20)] + [make_spec("gcd")]
    assert verifier.questions(specs) == [verifier.question(spec) for spec in specs]
    assert verifier.questions([]) == []


def test_questions_reports_the_place_of_a_spec_without_a_question(verifier: Verifier) -> None:
    foreign = msgspec.structs.replace(make_spec(), generator="another 1.0")
    for bad, code in ((UNGENERATED, ErrorCode.VERIFIER_FAILED), (foreign, ErrorCode.TASK_FOREIGN)):
        with pytest.raises(NoQuestionError) as caught:
            verifier.questions([make_spec(), bad, make_spec(index=8)])
        assert (caught.value.position, caught.value.refusal.code) == (1, code)


def test_sample_of_long_questions_fits_into_replies_of_the_child(verifier: Verifier) -> None:
    longest: Config = {"max_inputs": 7, "max_terms": 11, "min_inputs": 6, "min_terms": 9}
    digests = verifier.sample_digests(
        dataset="circuit_logic", config=longest, seed=1, indices=range(256)
    )
    assert len(digests) == 256


def test_stream_skips_tasks_that_cannot_be_made(verifier: Verifier) -> None:
    drawn = verifier.draw(
        key=UNGENERATED_KEY,
        part=Part.TRAINING,
        dataset=UNGENERATED.dataset,
        config={},
        seed=UNGENERATED.seed,
        counter=UNGENERATED_COUNTER,
    )
    attempts = [
        keyed_index(
            key=UNGENERATED_KEY,
            part=Part.TRAINING,
            dataset=UNGENERATED.dataset,
            counter=DRAW_ATTEMPTS * UNGENERATED_COUNTER + attempt,
        )
        for attempt in range(DRAW_ATTEMPTS)
    ]
    assert attempts[0] == UNGENERATED.index
    assert drawn.spec.index in attempts[1:]


def test_verdicts_are_in_the_order_of_the_texts(verifier: Verifier) -> None:
    spec = make_spec(config=ONE_DIGIT)
    right = solve_sum(verifier.question(spec))
    verdicts = verifier.score(
        spec, [answered("no"), answered(right), right, answered(f"it is {right}"), ""]
    )
    assert [verdict.reason for verdict in verdicts] == [
        *("wrong", "right", "no_answer"),
        *("partial", "no_answer"),
    ]
    assert [verdict.solved for verdict in verdicts] == [False, True, False, False, False]
    assert verdicts[1].score == 1.0


def test_empty_answer_is_wrong(verifier: Verifier) -> None:
    (verdict,) = verifier.score(make_spec(), [answered(" ")])
    assert verdict.reason == "wrong"


def test_no_texts_give_no_verdicts(verifier: Verifier) -> None:
    assert verifier.score(make_spec(), []) == []


def test_precision_of_one_dataset_does_not_affect_another(verifier: Verifier) -> None:
    verifier.question(make_spec("decimal_arithmetic", config={"precision": 5}))
    spec = make_spec("decimal_chain_sum", config={"min_digits": 4, "max_digits": 4})
    assert verifier.question(spec).endswith(" 6854.4 - 7873.8986 =")


def test_text_over_the_length_limit_is_wrong_and_not_scored(verifier: Verifier) -> None:
    spec = make_spec(config=ONE_DIGIT)
    right = answered(solve_sum(verifier.question(spec)))
    long = right.rjust(MAX_COMPLETION_CHARS + 1)
    assert [verdict.reason for verdict in verifier.score(spec, [long, right])] == [
        "wrong",
        "right",
    ]


def test_lone_surrogate_in_a_text_is_scored_as_wrong(verifier: Verifier) -> None:
    (verdict,) = verifier.score(make_spec(), [answered("\ud800")])
    assert verdict.reason == "wrong"


@pytest.mark.parametrize("part", Part)
def test_drawn_task_belongs_to_its_part_by_index_and_by_question(
    verifier: Verifier, part: Part
) -> None:
    for counter in range(10):
        task = draw(verifier, part=part, counter=counter)
        assert index_part(task.spec.index) is part
        assert question_part(task.question) is part


def test_draw_is_repeatable_and_its_spec_gives_its_question(verifier: Verifier) -> None:
    task = draw(verifier, counter=5)
    assert draw(verifier, counter=5) == task
    assert verifier.question(task.spec) == task.question


def test_another_counter_draws_another_task(verifier: Verifier) -> None:
    drawn = {draw(verifier, config={}, counter=counter).question for counter in range(20)}
    assert len(drawn) > 15


@pytest.mark.parametrize("choice", STARTER_TASKS, ids=lambda choice: choice.dataset)
def test_starter_questions_are_short(verifier: Verifier, choice: TaskChoice) -> None:
    for counter in range(5):
        task = draw(verifier, dataset=choice.dataset, config=choice.config, counter=counter)
        assert len(task.question) < 140


@pytest.mark.slow
def test_every_spec_gives_the_same_question_in_two_child_processes(verifier: Verifier) -> None:
    with Verifier() as another:
        for dataset in allowed_datasets():
            for index in (3, 2**31 - 1):
                spec = make_spec(dataset, index=index)
                assert verifier.question(spec) == another.question(spec), dataset


def test_spec_of_another_generator_version_is_refused(verifier: Verifier) -> None:
    spec = make_spec()
    foreign = type(spec)(spec.dataset, spec.config, spec.seed, spec.index, "reasoning-gym 9.9")
    with pytest.raises(RefusedError, match=GENERATOR) as caught:
        verifier.question(foreign)
    assert caught.value.code is ErrorCode.TASK_FOREIGN


def test_part_without_questions_is_refused_with_advice(verifier: Verifier) -> None:
    only_one: Config = {"min_n": 10, "max_n": 10}
    question = verifier.question(make_spec("count_bits", config=only_one))
    other = next(part for part in Part if part is not question_part(question))
    with pytest.raises(RefusedError, match="widen its ranges") as caught:
        draw(verifier, part=other, dataset="count_bits", config=only_one)
    assert caught.value.code is ErrorCode.TASK_CONFIG
