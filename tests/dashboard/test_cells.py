"""Test table cells, bars and links of which pages have hundreds."""

from html.parser import HTMLParser

from django.urls import reverse
from django.utils import translation

from judge.models import Score
from swarm_web.dashboard.reports.answers import AnswerMark, SheetRow
from swarm_web.dashboard.reports.board import Lift
from swarm_web.dashboard.reports.round import advise
from swarm_web.dashboard.templatetags.cells import (
    arm_label,
    difference_bar,
    heat_rows,
    interval_bar,
    lift_cell,
    reason_words,
    result_rows,
    score_cells,
    sparkline,
    value_rows,
)
from swarm_web.nodes.models import Node, node_path
from tests.dashboard.board_rows import make_row


class Reader(HTMLParser):
    """Parses a fragment of HTML: tags with their attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def attributes(html: str, tag: str) -> list[dict[str, str | None]]:
    return [attrs for name, attrs in Reader(html).tags if name == tag]


def test_path_of_a_node_is_the_url_of_its_page() -> None:
    assert node_path("amber-9_B") == reverse("node", args=["amber-9_B"])


def test_arms_are_translated() -> None:
    assert arm_label("base") == '<span class="arm base">untrained</span>'
    with translation.override("fa"):
        assert "untrained" not in arm_label("base")


def test_interval_bar_is_a_hundred_units_wide() -> None:
    _track, reach, at = attributes(interval_bar(0.5, (0.4, 0.7)), "rect")
    assert (reach["x"], reach["width"], at["x"]) == ("40.0", "30.0", "50.0")


def test_interval_bar_is_scaled_to_the_given_maximum() -> None:
    _track, reach, at = attributes(interval_bar(0.05, (0.04, 0.07), 0.1), "rect")
    assert (reach["x"], reach["width"], at["x"]) == ("40.0", "30.0", "50.0")


def test_difference_bar_extends_to_both_sides_of_zero() -> None:
    _track, zero, reach, at = attributes(difference_bar(-0.1, (-0.2, 0.1), 0.2), "rect")
    assert zero["class"] == "zero"
    assert (reach["x"], reach["width"], at["x"]) == ("0.0", "75.0", "25.0")


def test_sparkline_without_scores_is_empty() -> None:
    assert sparkline([]) == ""


def test_sparkline_is_drawn_from_zero_to_one() -> None:
    line = sparkline([0.0, 1.0])
    assert [each["points"] for each in attributes(line, "polyline")] == ["2.0,14.0 58.0,2.0"]
    assert [(dot["cx"], dot["cy"]) for dot in attributes(line, "circle")] == [("58.0", "2.0")]


def test_sparkline_of_a_single_round_is_a_dot() -> None:
    dots = attributes(sparkline([0.5]), "circle")
    assert [(dot["cx"], dot["cy"]) for dot in dots] == [("2.0", "8.0")]


def test_sparkline_is_scaled_to_the_given_maximum() -> None:
    assert sparkline([0.05, 0.06], 0.1) == sparkline([0.5, 0.6])


def test_value_rows_format_shares_intervals_and_integers() -> None:
    html = value_rows([(7, 0.25, (0.1, 0.4), None)])
    assert Reader(html).texts == ["7", ".250", ".100–.400", "–"]


def test_value_rows_escape_text() -> None:
    assert "<b>" not in value_rows([("<b>",)])


def test_interval_in_a_right_to_left_table_is_directionally_isolated() -> None:
    with translation.override("fa"):
        assert Reader(value_rows([((0.1, 0.4),)])).texts == ["\u2066.100–.400\u2069"]


def test_heat_rows_show_verdict_and_latency() -> None:
    score = Score(node=Node(name="amber"))
    marks = [
        AnswerMark(True, "right", 1500, 1.5),
        AnswerMark(False, "wrong", 800, 0.8),
        AnswerMark(False, "no_answer", 900, 0.9),
        AnswerMark(None),
    ]
    html = heat_rows([SheetRow(score, marks)])
    assert [(cell["class"], cell["title"]) for cell in attributes(html, "td")] == [
        ("right", "right, 1.5\u202fs"),
        ("wrong", "wrong, 0.8\u202fs"),
        ("wrong", "no <answer> tags, 0.9\u202fs"),
        ("none", "no answer received"),
    ]
    assert attributes(html, "a") == [{"href": "/nodes/amber/"}]


def test_score_cells_show_score_interval_and_count() -> None:
    score = Score(score=0.5, interval_low=0.25, interval_high=0.75, correct=4, n=8)
    html = score_cells(score)
    assert Reader(html).texts == [".500", ".250–.750", "4 of 8"]
    assert attributes(html, "data") == [{"value": "0.5"}]


def test_score_cells_of_an_absent_node_are_dashes() -> None:
    assert Reader(score_cells(Score(score=None))).texts == ["–"] * 3


def test_result_rows_show_node_result_time_arm_model_and_remark() -> None:
    node = Node(name="amber", quarantined=True)
    score = Score(node=node, score=None, arm="base", model="<tiny>", reason=Score.Reason.CAME_LATE)
    html = result_rows([SheetRow(score, [AnswerMark(True, "right", 1500, 1.5)])])
    late = f"{Score.Reason.CAME_LATE.label[0].upper()}{Score.Reason.CAME_LATE.label[1:]}."
    shown = " ".join(Reader(html).texts).split()
    expected = ["amber", "–", "–", "–", "1.5", "s", "untrained", "<tiny>"]
    expected += [*"Quarantined: not ranked.".split(), *late.split(), *advise("came_late").split()]
    assert shown == expected
    assert attributes(html, "tr") == [{"class": "untrained"}]


def test_complete_result_has_no_remark() -> None:
    assert reason_words(Score(reason="")) == ""


def test_lift_names_the_base_that_it_is_compared_with() -> None:
    lift = Lift(0.125, (0.05, 0.2), make_row("base-nano", score=0.25, n=40))
    (cell,) = attributes(lift_cell(lift), "abbr")
    assert (
        cell["title"]
        == "95 % interval +5.0 to +20.0 points, compared with base-nano (.250, n = 40)"
    )


def test_lift_without_a_base_is_a_dash() -> None:
    assert Reader(lift_cell(None)).texts == ["–"]
