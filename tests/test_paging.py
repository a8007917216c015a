"""Cursors of the leaderboard survive the way through an address, and nothing else is one."""

import pytest

from swarm_web.paging import Filters, decode_cursor, encode_cursor


@pytest.mark.parametrize("place", [0, 1, 50, 2**31 - 1])
def test_a_cursor_is_read_as_it_was_written(place: int) -> None:
    assert decode_cursor(encode_cursor(place)) == place


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "²", "9" * 11, "5 "])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor(text)


def test_filters_without_a_wish_are_none() -> None:
    assert not Filters()
    assert Filters(search="heron")
