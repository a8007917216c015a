"""Test the codes that people type to approve a client."""

from random import Random

import pytest

from swarm_web.joining.codes import draw_user_code, read_user_code, show_user_code


def test_code_has_eight_letters_without_ambiguous_ones() -> None:
    code = draw_user_code(Random(1))
    assert len(code) == 8
    assert not set(code) & set("AEIOUY015")


@pytest.mark.parametrize("typed", ["bcdf-ghjk", " BCDF GHJK ", "BCDFGHJK", "b.c.d.f-g h j k"])
def test_code_is_normalized_from_different_spellings(typed: str) -> None:
    assert read_user_code(typed) == "BCDFGHJK"


def test_code_is_displayed_in_two_halves() -> None:
    assert show_user_code("BCDFGHJK") == "BCDF-GHJK"


def test_input_that_is_no_code_is_truncated() -> None:
    assert len(read_user_code("B" * 100_000)) == 16
