"""Operators set the system prompt, and see the full prompt of a model."""

import html
from typing import Any

import pytest
from django.test import Client

from judge.models import Season
from judge.prompts import ANSWER_FORMATS, MAX_PROMPT_CHARS, check_system_prompt
from judge.selectors.seasons import describe_season
from swarm_protocol.prompts import SYSTEM_PROMPT
from tests.judge.conftest import SUMS
from tests.judge.operators import post_season

pytestmark = pytest.mark.django_db

TERSE = "Only <answer>the answer</answer>."


def test_a_new_season_has_the_default_prompt(operator: Client) -> None:
    page = html.unescape(operator.get("/admin/judge/season/add/").content.decode())
    assert SYSTEM_PROMPT in page
    assert Season().system_prompt == SYSTEM_PROMPT


def test_every_example_prompt_is_shown_and_valid(operator: Client) -> None:
    page = html.unescape(operator.get("/admin/judge/season/add/").content.decode())
    for text in ANSWER_FORMATS.values():
        check_system_prompt(text)
        assert text in page


def test_nodes_get_the_prompt_as_it_was_typed(operator: Client) -> None:
    post_season(operator, SUMS, system_prompt=f"Two lines.\r\n{TERSE}")
    assert describe_season(Season.objects.get()).system_prompt == f"Two lines.\n{TERSE}"


def test_a_seasons_page_shows_the_prompt_as_a_model_sees_it(operator: Client) -> None:
    post_season(operator, SUMS, system_prompt=f"Two lines.\n{TERSE}")
    page = operator.get(f"/admin/judge/season/{Season.objects.get().pk}/change/").content.decode()
    shown = page.split("<dt>system</dt>")[1].split("</dl>")[0]
    assert "Two lines.<br>Only &lt;answer&gt;the answer&lt;/answer&gt;." in shown
    assert "<dt>user</dt><dd>State the final answer" in shown


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Solve it.", "Ask for the answer between <answer> and </answer>"),
        ("Solve it. <answer>", "Ask for the answer between <answer> and </answer>"),
        ("", "This field is required"),
        (f"{TERSE}\x07", "Remove control characters"),
        (TERSE.ljust(MAX_PROMPT_CHARS, "x") + "x", f"at most {MAX_PROMPT_CHARS} characters"),
    ],
    ids=["no-tags", "one-tag", "empty", "control-character", "too-long"],
)
def test_a_prompt_that_cannot_be_scored_is_refused(
    operator: Client, typed: Any, words: str
) -> None:
    assert words in post_season(operator, SUMS, system_prompt=typed)
    assert not Season.objects.exists()
