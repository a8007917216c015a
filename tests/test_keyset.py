"""Test keysets: pages of rows after a key, and the encoding of keys in URLs."""

from datetime import UTC, datetime

import pytest

from judge.models import Round, Score, Season
from swarm_web.core.keyset import (
    MAX_NUMBER,
    KeyColumn,
    KeyMoment,
    KeyNumber,
    Keyset,
    decode_key,
    decode_numbers,
    encode_key,
    encode_numbers,
)
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_round, make_season

BEST_FIRST = Keyset(KeyColumn("score", descending=True, nulls_last=True), "node_id")


@pytest.fixture
def season(db: None) -> Season:
    return make_season("Autumn")


def make_scores(season: Season, values: list[float | None]) -> list[int]:
    """Store scores of one round, and return their nodes' ids in the given order."""
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    nodes = [make_node()[0] for _ in values]
    Score.objects.bulk_create(
        Score(
            round=judge_round,
            node=node,
            model="tiny",
            arm="swarm",
            status=Score.Status.ABSENT if value is None else Score.Status.SCORED,
            score=value,
            n=0 if value is None else 16,
        )
        for node, value in zip(nodes, values, strict=True)
    )
    return [node.pk for node in nodes]


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_pages_contain_every_row_once_in_order(season: Season, limit: int) -> None:
    a, b, c, d, e, f = make_scores(season, [0.5, None, 0.9, 0.5, None, 0.1])
    collected, after = [], None
    while True:
        page = BEST_FIRST.read(Score.objects.all(), after=after, limit=limit)
        collected += [score.node_id for score in page.rows]
        if page.next is None:
            break
        after = page.next
    assert collected == [c, a, d, f, b, e]


def test_find_earlier_returns_the_key_of_the_previous_page(db: None) -> None:
    for name in ("amber", "bold", "crane", "dove", "eagle"):
        make_node(name)
    by_name = Keyset("name")
    nodes = Node.objects.all()
    assert by_name.find_earlier(nodes, ("dove",), limit=2) == ("bold",)
    # The rows up to this one are exactly one page, the first.
    assert by_name.find_earlier(nodes, ("bold",), limit=2) == ()
    assert by_name.find_earlier(nodes, ("aardvark",), limit=2) is None


def test_order_may_be_descending(season: Season) -> None:
    numbers = [make_round(season, phase=Round.Phase.CLOSED).number for _ in range(4)][::-1]
    newest = Keyset("-number")
    page = newest.read(Round.objects.all(), after=(numbers[0],), limit=2)
    assert [judge_round.number for judge_round in page.rows] == numbers[1:3]
    assert page.next == (numbers[2],)
    assert newest.find_earlier(Round.objects.all(), page.next, limit=2) == (numbers[0],)


@pytest.mark.parametrize("key", [("amber",), (128,), ("ä", 2**40)])
def test_key_survives_encoding(key: tuple[object, ...]) -> None:
    assert decode_key(encode_key(key), tuple) == key


def test_datetime_in_a_key_survives_encoding() -> None:
    key = (datetime(2026, 11, 24, 12, 30, 1, 123456, tzinfo=UTC), 7)
    assert decode_key(encode_key(key), tuple[KeyMoment, KeyNumber]) == key


@pytest.mark.parametrize(
    "text", ["x", "WyJ", encode_key(["amber"]), encode_key([-1]), encode_key([MAX_NUMBER + 1])]
)
def test_invalid_key_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        decode_key(text, tuple[KeyNumber])


@pytest.mark.parametrize("numbers", [(0,), (50,), (1_763_000_000_000_000, 4)])
def test_numbers_survive_encoding(numbers: tuple[int, ...]) -> None:
    assert decode_numbers(encode_numbers(*numbers), count=len(numbers)) == numbers


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²", "5 ", "1-2"])
def test_invalid_numbers_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not 1 numbers"):
        decode_numbers(text)


def test_number_above_the_maximum_is_clamped() -> None:
    assert decode_numbers("9" * 30) == (MAX_NUMBER,)
