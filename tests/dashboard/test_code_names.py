"""Test that codes are translated, and that unknown codes are readable."""

from typing import get_args

import pytest
from django.utils import translation

from node_client.learning.external.checking import DropReason
from swarm_web.dashboard.templatetags.figures import name_code


@pytest.mark.parametrize("code", [*get_args(DropReason), "answers_changed", "scores_changed"])
def test_known_code_is_translated_to_persian(code: str) -> None:
    with translation.override("fa"):
        assert name_code(code) != code.replace("_", " ")


def test_unknown_code_is_shown_without_underscores() -> None:
    assert name_code("too_odd") == "too odd"
