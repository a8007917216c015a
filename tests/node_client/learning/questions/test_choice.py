"""A node's stream: its own questions, of the season's mix and difficulty, without repetition."""

from collections import Counter

import msgspec
import pytest

from node_client.runtime.alone import practice_season
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.allowlist import check_training_spec
from swarm_tasks.keyspace import Part, index_part, question_part
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    OnceFailingVerifier,
    toy_season,
    toy_stream,
)


def test_stream_continues_where_it_stopped(verifier: Verifier) -> None:
    whole = toy_stream(verifier).draw(4)
    first, resumed = toy_stream(verifier), toy_stream(verifier)
    first.draw(2)
    resumed.load(first.state(), same_season=True)
    assert resumed.draw(2) == whole[2:]


def test_stream_draws_only_training_tasks(verifier: Verifier) -> None:
    tasks = toy_stream(verifier).draw(16)
    assert {index_part(task.spec.index) for task in tasks} == {Part.TRAINING}
    assert {question_part(task.question) for task in tasks} == {Part.TRAINING}


def test_streams_of_many_nodes_share_no_task(verifier: Verifier) -> None:
    keys = [bytes([number]) for number in range(8)]
    drawn = [task.spec.index for key in keys for task in toy_stream(verifier, key=key).draw(8)]
    assert len(set(drawn)) == 64


def test_stream_never_repeats_a_task(verifier: Verifier) -> None:
    drawn = toy_stream(verifier).draw(64)
    assert len({task.spec.index for task in drawn}) == 64


def test_every_task_is_accepted_by_other_nodes_of_the_season(verifier: Verifier) -> None:
    season = practice_season()
    for task in toy_stream(verifier, season=season).draw(32):
        check_training_spec(task.spec, seed=season.seed, tasks=season.tasks)


def test_difficulty_is_that_of_the_season(verifier: Verifier) -> None:
    harder: Config = {"min_terms": 4, "max_terms": 4, "min_digits": 3, "max_digits": 3}
    season = msgspec.structs.replace(toy_season(), tasks=[TaskChoice("chain_sum", harder, 1.0)])
    (task,) = toy_stream(verifier, season=season).draw(1)
    assert task.spec.config == harder


def test_datasets_are_drawn_by_the_weights_of_the_mix(verifier: Verifier) -> None:
    tasks = [TaskChoice("gcd", {}, 3.0), TaskChoice("lcm", {}, 1.0)]
    season = msgspec.structs.replace(toy_season(), tasks=tasks)
    drawn = toy_stream(verifier, season=season).draw(200)
    share = Counter(task.spec.dataset for task in drawn)["gcd"] / 200
    assert 0.65 < share < 0.85


def test_task_that_cannot_be_made_is_not_drawn_again(verifier: Verifier) -> None:
    stream = toy_stream(OnceFailingVerifier(verifier, draw=1))
    with pytest.raises(RefusedError):
        stream.draw(1)
    assert stream.draw(1) == toy_stream(verifier).draw(2)[1:]
