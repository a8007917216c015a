"""Operators decide flags, quarantine and release nodes; every decision is recorded."""

import copy
import re
from html import unescape

import pytest
from django.test import Client

from judge.models import Flag, Round, Ruling, Season, Standing
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from tests.judge.conftest import Clock, connect_node, start_sums
from tests.judge.operators import act, decide, only_ruling, play_round, standing_of

pytestmark = pytest.mark.django_db

FLAGS, NODES = "judge/flag", "nodes/node"


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def first_round(module_rows: None, clock: Clock, verifier: Verifier) -> Round:
    """A closed round of two nodes."""
    return play_round(start_sums(clock), clock, verifier, amber=4, birch=2)


@pytest.fixture
def season(first_round: Round, db: None) -> Season:
    return Season.objects.get()


@pytest.fixture
def played(first_round: Round, db: None) -> Round:
    return copy.deepcopy(first_round)


@pytest.fixture
def flag(played: Round, clock: Clock) -> Flag:
    """A flag about both nodes."""
    return make_flag(played, clock, other=node("birch"))


def make_flag(judge_round: Round, clock: Clock, *, other: Node | None = None) -> Flag:
    return Flag.objects.create(
        kind=Flag.Kind.COPIED if other else Flag.Kind.JUMPED,
        round=judge_round,
        node=node("amber"),
        other=other,
        text="14 of 15 wrong answers in common",
        p_adjusted=0.00123,
        created_at=clock.now,
    )


def node(name: str) -> Node:
    return Node.objects.get(name=name)


def read(operator: Client, path: str) -> str:
    return operator.get(f"/admin/{path}").content.decode()


def remarks() -> dict[str, str]:
    """Return each node's remark on the leaderboard."""
    rows = Standing.objects.filter(window="round")
    return dict(rows.values_list("node__name", "remark"))


# ---- nodes


def test_a_node_is_quarantined_only_with_a_reason(operator: Client, played: Round) -> None:
    page = act(operator, NODES, "quarantine", node("amber").pk)
    assert "removed from the ranks" in page
    decide(operator, NODES, "quarantine", node("amber").pk, reason="")
    assert not node("amber").quarantined


def test_quarantine_removes_the_rank_and_records_the_reason(
    operator: Client, played: Round
) -> None:
    decide(operator, NODES, "quarantine", node("amber").pk, reason="copies answers")
    assert remarks() == {"amber": "quarantined", "birch": ""}
    assert standing_of("birch").place == 1
    assert only_ruling() == ("quarantine", "olive", "copies answers")


def test_release_restores_the_rank_and_records_the_reason(operator: Client, played: Round) -> None:
    decide(operator, NODES, "quarantine", node("amber").pk, reason="copies answers")
    Ruling.objects.all().delete()
    decide(operator, NODES, "release", node("amber").pk, reason="a shared prompt, no copies")
    assert remarks() == {"amber": "", "birch": ""}
    assert only_ruling() == ("release", "olive", "a shared prompt, no copies")


def test_a_node_that_is_not_quarantined_cannot_be_released(operator: Client, played: Round) -> None:
    page = decide(operator, NODES, "release", node("amber").pk, reason="by mistake")
    assert "Nothing changed for amber: it is not quarantined." in page
    assert not Ruling.objects.exists()


def test_quarantined_nodes_can_be_listed(operator: Client, played: Round) -> None:
    decide(operator, NODES, "quarantine", node("amber").pk, reason="copies answers")
    page = read(operator, "nodes/node/?quarantined__exact=1")
    assert ">amber</a>" in page
    assert ">birch</a>" not in page


def test_quarantine_cannot_skip_the_reason(operator: Client, played: Round) -> None:
    path = f"/admin/nodes/node/{node('amber').pk}/change/"
    data = {"name": "amber", "arm": "swarm", "quarantined": "on"}
    assert operator.post(path, data).status_code == 302
    assert not node("amber").quarantined


@pytest.mark.parametrize("name", ["amber", "birch"])
def test_a_node_links_to_its_flags_in_every_state(operator: Client, flag: Flag, name: str) -> None:
    page = read(operator, "nodes/node/")
    assert f'<a href="/admin/judge/flag/?about={name}&amp;state=all">1</a>' in page
    Flag.objects.update(state=Flag.State.UPHELD)
    assert flag.text in read(operator, f"judge/flag/?about={name}&state=all")


def test_a_nodes_flags_do_not_include_those_of_a_node_with_a_longer_name(
    operator: Client, flag: Flag, clock: Clock
) -> None:
    short = connect_node("amb", clock)
    page = read(operator, f"nodes/node/{short.pk}/change/")
    (link,) = re.findall(r'href="/admin/(judge/flag/.+?)"', page)
    assert flag.text not in read(operator, unescape(link))


def test_a_nodes_page_shows_the_rulings_about_it(operator: Client, played: Round) -> None:
    decide(operator, NODES, "quarantine", node("amber").pk, reason="copies answers")
    page = read(operator, f"nodes/node/{node('amber').pk}/change/")
    assert "removed a node from the ranking: copies answers" in page


def test_a_nodes_page_shows_that_it_is_quarantined(operator: Client, played: Round) -> None:
    path = f"nodes/node/{node('amber').pk}/change/"
    assert 'alt="False"' in read(operator, path)
    decide(operator, NODES, "quarantine", node("amber").pk, reason="copies answers")
    assert 'alt="True"' in read(operator, path)


def test_a_node_that_had_a_seat_in_a_round_cannot_be_deleted(
    operator: Client, open_round: Round, clock: Clock
) -> None:
    seated = connect_node("coral", clock)
    open_round.seats.create(node=seated)
    path = f"/admin/nodes/node/{seated.pk}/delete/"
    assert operator.post(path, {"post": "yes"}).status_code == 403


def test_a_node_that_was_never_judged_can_be_deleted(operator: Client) -> None:
    fresh = Node.objects.create(name="typo", token_hash="x")
    operator.post(f"/admin/nodes/node/{fresh.pk}/delete/", {"post": "yes"})
    assert not Node.objects.filter(name="typo").exists()


# ---- flags


def test_the_list_shows_a_flags_figures(operator: Client, flag: Flag) -> None:
    page = read(operator, "judge/flag/")
    assert "14 of 15 wrong answers in common" in page
    assert "0.0012" in page
    assert all(f">{name}</td>" in page for name in ("amber", "birch", "round 1"))


def test_the_list_shows_open_flags_by_default(operator: Client, flag: Flag) -> None:
    Flag.objects.update(state=Flag.State.DISMISSED)
    assert flag.text not in read(operator, "judge/flag/")
    assert flag.text in read(operator, "judge/flag/?state=dismissed")
    assert flag.text in read(operator, "judge/flag/?state=all")
    assert flag.text not in read(operator, "judge/flag/?state=upheld")


def test_quarantine_for_a_flag_upholds_it_and_quarantines_its_node_only(
    operator: Client, flag: Flag
) -> None:
    decide(operator, FLAGS, "quarantine", flag.pk, reason="copies answers")
    flag.refresh_from_db()
    assert flag.state == Flag.State.UPHELD
    assert remarks() == {"amber": "quarantined", "birch": ""}
    assert only_ruling() == ("quarantine", "olive", "copies answers")
    assert Ruling.objects.get().flag == flag


def test_quarantine_both_quarantines_both_nodes_with_a_ruling_for_each(
    operator: Client, flag: Flag
) -> None:
    decide(operator, FLAGS, "quarantine_both", flag.pk, reason="one model behind two names")
    assert remarks() == {"amber": "quarantined", "birch": "quarantined"}
    rulings = Ruling.objects.order_by("pk").values_list("node__name", "flag", "reason")
    assert list(rulings) == [
        ("amber", flag.pk, "one model behind two names"),
        ("birch", flag.pk, "one model behind two names"),
    ]


def test_quarantine_both_for_a_jump_quarantines_its_only_node(
    operator: Client, played: Round, clock: Clock
) -> None:
    jump = make_flag(played, clock)
    decide(operator, FLAGS, "quarantine_both", jump.pk, reason="asks another model")
    assert remarks() == {"amber": "quarantined", "birch": ""}


def test_dismissing_a_flag_changes_no_rank_and_records_the_reason(
    operator: Client, flag: Flag
) -> None:
    decide(operator, FLAGS, "dismiss", flag.pk, reason="both learned from one rollout")
    flag.refresh_from_db()
    assert flag.state == Flag.State.DISMISSED
    assert remarks() == {"amber": "", "birch": ""}
    assert only_ruling() == ("dismiss", "olive", "both learned from one rollout")


def test_a_flag_is_not_dismissed_twice(operator: Client, flag: Flag) -> None:
    Flag.objects.update(state=Flag.State.UPHELD)
    page = operator.post(
        "/admin/judge/flag/?state=all",
        {
            "action": "dismiss",
            "_selected_action": [flag.pk],
            "decided": "yes",
            "reason": "again",
        },
        follow=True,
    ).content.decode()
    assert "it is already upheld." in page
    assert not Ruling.objects.exists()


def test_a_flag_cannot_be_added_edited_or_deleted(operator: Client, flag: Flag) -> None:
    paths = ["add/", f"{flag.pk}/change/", f"{flag.pk}/delete/"]
    answers = [operator.post(f"/admin/judge/flag/{path}", {"post": "yes"}) for path in paths]
    assert [answer.status_code for answer in answers] == [403, 403, 403]


# ---- rulings


def test_a_ruling_cannot_be_added_edited_or_deleted(operator: Client, flag: Flag) -> None:
    decide(operator, FLAGS, "dismiss", flag.pk, reason="harmless")
    ruling = Ruling.objects.get()
    paths = ["add/", f"{ruling.pk}/change/", f"{ruling.pk}/delete/"]
    answers = [operator.post(f"/admin/judge/ruling/{path}", {"post": "yes"}) for path in paths]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    act(operator, "judge/ruling", "delete_selected", ruling.pk)
    assert Ruling.objects.exists()


@pytest.mark.parametrize(
    ("searched", "found"), [("amber", True), ("birch", False), ("17", True), ("1", False)]
)
def test_rulings_are_found_by_node_and_round(
    operator: Client, played: Round, searched: str, found: bool
) -> None:
    Round.objects.update(number=17)
    decide(operator, NODES, "quarantine", node("amber").pk, reason="reason of the first")
    decide(operator, "judge/round", "void", played.pk, reason="reason of the second")
    page = read(operator, f"judge/ruling/?q={searched}")
    assert ("reason of the" in page) is found


def test_a_ruling_can_be_read_in_full(operator: Client, flag: Flag) -> None:
    decide(operator, FLAGS, "dismiss", flag.pk, reason="harmless")
    page = read(operator, f"judge/ruling/{Ruling.objects.get().pk}/change/")
    assert "harmless" in page
    assert "olive" in page
