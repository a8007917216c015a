"""Codes are named in the page's language; unknown ones stay readable."""

from typing import get_args

import pytest
from django.utils import translation

from node_client.learning.external.checking import DropReason
from swarm_web.dashboard.templatetags.figures import name_code


@pytest.mark.parametrize("code", [*get_args(DropReason), "answers_changed", "scores_changed"])
def test_what_is_counted_has_a_name_in_persian(code: str) -> None:
    with translation.override("fa"):
        assert name_code(code) != code.replace("_", " ")


def test_a_code_of_a_node_s_own_making_loses_its_underscores() -> None:
    assert name_code("too_odd") == "too odd"
