"""Codes that people type."""

from random import Random

import pytest

from swarm_web.joining.codes import draw_user_code, read_user_code, show_user_code


def test_a_code_holds_eight_letters_that_no_two_people_read_differently() -> None:
    code = draw_user_code(Random(1))
    assert len(code) == 8
    assert not set(code) & set("AEIOUY015")


@pytest.mark.parametrize("typed", ["bcdf-ghjk", " BCDF GHJK ", "BCDFGHJK", "b.c.d.f-g h j k"])
def test_a_code_is_known_however_it_is_typed(typed: str) -> None:
    assert read_user_code(typed) == "BCDFGHJK"


def test_a_code_is_shown_in_two_halves() -> None:
    assert show_user_code("BCDFGHJK") == "BCDF-GHJK"


def test_what_is_no_code_is_cut_to_a_length_that_a_query_can_take() -> None:
    assert len(read_user_code("B" * 100_000)) == 16
