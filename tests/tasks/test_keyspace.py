"""Parts of the index range and classes of question hashes are disjoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tasks.keyspace import INDEX_END, RANGES, Part, index_part, keyed_index, question_part
from swarm_tasks.verifier import Verifier
from tests.tasks.specs import ONE_DIGIT, SEED

keys = st.binary(min_size=1, max_size=64)
names = st.text(min_size=1, max_size=30)
counters = st.integers(min_value=0, max_value=2**60)


@given(key=keys, part=st.sampled_from(Part), dataset=names, counter=counters)
def test_keyed_index_lies_only_in_its_own_part(
    key: bytes, part: Part, dataset: str, counter: int
) -> None:
    index = keyed_index(key=key, part=part, dataset=dataset, counter=counter)
    assert [other for other, span in RANGES.items() if index in span] == [part]
    assert index_part(index) is part


@given(question=st.text())
def test_every_question_belongs_to_exactly_one_part(question: str) -> None:
    assert question_part(question) in Part


def test_parts_cover_the_index_range_without_overlap() -> None:
    spans = sorted(RANGES.values(), key=lambda span: span.start)
    assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
    assert spans[-1].stop == INDEX_END


@pytest.mark.parametrize("index", [-1, INDEX_END])
def test_index_outside_the_range_belongs_to_no_part(index: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        index_part(index)


def test_streams_of_two_keys_differ() -> None:
    streams = [
        [keyed_index(key=key, part=Part.JUDGE, dataset="gcd", counter=n) for n in range(20)]
        for key in (b"one", b"two")
    ]
    assert not set(streams[0]) & set(streams[1])


def test_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="key"):
        keyed_index(key=b"", part=Part.JUDGE, dataset="gcd", counter=0)


def test_questions_of_the_parts_are_disjoint_in_a_small_question_space(
    verifier: Verifier,
) -> None:
    drawn = {
        part: {
            verifier.draw(
                key=b"secret",
                part=part,
                dataset="products",
                config=ONE_DIGIT,
                seed=SEED,
                counter=counter,
            ).question
            for counter in range(60)
        }
        for part in Part
    }
    assert all(len(questions) > 5 for questions in drawn.values())
    assert not drawn[Part.TRAINING] & drawn[Part.HELD_OUT]
    assert not drawn[Part.TRAINING] & drawn[Part.JUDGE]
    assert not drawn[Part.HELD_OUT] & drawn[Part.JUDGE]
