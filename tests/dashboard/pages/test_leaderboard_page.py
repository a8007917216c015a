"""Test the leaderboard page: order, ranks, remarks, filters and search."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from judge.models import Round, Season, Standing
from judge.services.oversight import quarantine_node
from swarm_record.stats import macro_interval
from swarm_web.accounts.services import show_profile
from swarm_web.board.leaderboard import PAGE_ROWS, Filters
from swarm_web.dashboard.templatetags.figures import interval
from swarm_web.nodes.models import Node
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_node, make_round, make_score, make_scores, publish


def read(client: Client, query: str = "") -> str:
    return client.get(f"/leaderboard/{query}").content.decode()


def listed(html: str) -> list[str]:
    return re.findall(r'<tr data-node="([^"]+)"', html)


def row_of(html: str, node: Node) -> str:
    found = re.search(rf'<tr data-node="{node.name}".*?</tr>', html, re.DOTALL)
    assert found is not None
    return found[0]


def make_owner(name: str) -> User:
    """Create an account with a public profile."""
    owner = User.objects.create_user(name)
    show_profile(owner, is_public=True)
    return owner


def judge(season: Season, **correct: int) -> dict[str, Node]:
    """Judge nodes by name in one round of 16 questions; names with `base` are base models."""
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=16)
    nodes = {}
    for name in correct:
        arm = Node.Arm.BASE if name.startswith("base") else Node.Arm.SWARM
        nodes[name], _ = make_node(name, arm=arm)
    make_scores(judge_round, {nodes[name]: solved for name, solved in correct.items()})
    publish(season)
    return nodes


def test_nodes_are_listed_from_best_to_worst(judged: list[Node], client: Client) -> None:
    assert listed(read(client)) == [node.name for node in judged]


def test_row_shows_score_interval_and_n(judged: list[Node], client: Client) -> None:
    row = row_of(read(client), judged[0])
    assert '<data value="1.0">1.000</data>' in row
    assert f"{interval(macro_interval(1.0, 32))}, n = 32" in row


def test_connected_node_without_a_score_is_listed_as_waiting(
    judged: list[Node], client: Client
) -> None:
    make_node("young-robin", last_seen=timezone.now())
    assert "young-robin" in read(client)


def test_node_that_missed_the_last_round_is_not_listed_as_waiting(
    season: Season, client: Client
) -> None:
    node = judge_nodes(season, count=1, rounds=1)[0]
    judge(season, calm=8)
    html = read(client, "?window=round")
    assert listed(html) == ["calm"]
    assert node.name not in html


def test_page_of_a_sliding_window_explains_that_ranks_cover_the_season(
    season: Season, client: Client
) -> None:
    judge_nodes(season, count=2, rounds=1)
    html = read(client, "?window=round")
    assert "2 nodes by score in this window</h1>" in html
    assert "Ranks compare nodes over the whole season, not in this window." in html
    assert '<abbr title="ranks compare nodes over the whole season">–</abbr>' in html


def test_recent_score_is_shown_beside_the_season_score(season: Season, client: Client) -> None:
    Season.objects.update(recent_rounds=1)
    season.refresh_from_db()
    calm = judge(season, calm=0)["calm"]
    make_score(make_round(season, phase=Round.Phase.CLOSED, questions=16), calm, correct=16)
    publish(season)
    row, page = row_of(read(client), calm), client.get("/nodes/calm/").content.decode()
    assert '<data value="0.5">.500</data>' in row
    assert '<small class="num">1.000</small>' in row
    assert ">1.000</data> <small>over the season’s last rounds</small>" in page


def test_quarantined_node_is_not_listed_as_waiting(judged: list[Node], client: Client) -> None:
    sly, _ = make_node("sly-fox", last_seen=timezone.now())
    quarantine_node(sly, reason="copies", actor=None, now=timezone.now())
    assert "sly-fox" not in read(client)


def test_unknown_window_returns_400(judged: list[Node], client: Client) -> None:
    answer = client.get("/leaderboard/?window=decade")
    assert answer.status_code == 400
    assert answer.json()["code"] == "query.window"


def test_tied_nodes_share_first_place(judged: list[Node], client: Client) -> None:
    assert "3 of 3 ranked nodes share first place" in read(client)


def test_remark_is_translated(client: Client, season: Season) -> None:
    judge(season, amber=4)
    Standing.objects.update(remark=Standing.Remark.TOO_FEW, rank_low=None, rank_high=None)
    words = "not enough questions in this window yet"
    assert words in read(client)
    assert words not in client.get("/leaderboard/", headers={"accept-language": "fa"}).text


def test_significant_leader_is_named(client: Client, season: Season) -> None:
    judge(season, amber=16, bold=0)
    assert '<span class="name">amber</span> leads 2 ranked nodes' in read(client)


def test_node_with_too_few_questions_has_no_rank_and_a_remark(
    client: Client, season: Season
) -> None:
    node, _ = make_node()
    make_score(make_round(season, phase=Round.Phase.CLOSED), node, correct=1, n=2)
    publish(season)
    html = read(client)
    assert "No node is ranked yet: a rank requires 16 questions" in html
    row = row_of(html, node)
    assert ">–</abbr>" in row
    assert '<small class="remark">not enough questions in this window yet</small>' in row


def test_base_is_unranked_and_follows_the_best_node_of_its_model(
    client: Client, season: Season
) -> None:
    nodes = judge(season, amber=16, base_tiny=4, bold=12)
    html = read(client)
    assert listed(html) == ["amber", "base_tiny", "bold"]
    row = row_of(html, nodes["base_tiny"])
    assert "untrained" in row
    assert ">–</abbr>" in row
    assert "2 of 2 ranked nodes share first place" in html


def test_row_shows_the_lift_over_the_base(client: Client, season: Season) -> None:
    nodes = judge(season, amber=16, base_tiny=4)
    row = row_of(read(client), nodes["amber"])
    assert ">+75.0</abbr>" in row
    assert "compared with base_tiny (.250, n = 16)" in row


def test_quarantined_nodes_are_counted_and_not_listed(client: Client, season: Season) -> None:
    nodes = judge(season, amber=16, bold=12)
    assert "quarantined node" not in read(client)
    quarantine_node(nodes["bold"], reason="copies", actor=None, now=timezone.now())
    html = read(client)
    assert listed(html) == ["amber"]
    assert "1 quarantined node is not shown." in html


def test_window_switch_shows_the_number_of_recent_rounds(client: Client, season: Season) -> None:
    Season.objects.filter(pk=season.pk).update(recent_rounds=7)
    html = read(client, "?window=recent")
    assert '<a href="?window=recent" aria-current="true">last 7 rounds</a>' in html


def test_page_has_a_help_text(judged: list[Node], client: Client) -> None:
    html = read(client)
    assert "How to read this table" in html
    assert "once 16 of its questions count, if it was scored in at least 90 %" in html


@pytest.mark.parametrize("page", ["/", "/leaderboard/"])
def test_help_explains_every_column(judged: list[Node], client: Client, page: str) -> None:
    html = client.get(page).content.decode()
    head = html[html.index('id="board"') : html.index("<tbody data-rows>")]
    columns = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<th .*?</th>", head)]
    assert len(columns) == 10
    explained = html[html.index("How to read this table") :].partition("</details>")[0]
    assert re.findall(r"<dt>(.*?)</dt>", explained) == columns


def test_page_has_fifty_rows_and_links_to_its_neighbours(client: Client, season: Season) -> None:
    judge_nodes(season, count=60, rounds=1)
    first = read(client)
    assert (len(listed(first)), "50 of 60 nodes" in first) == (50, True)
    assert f'rel="next" href="?after=50#board">Next {PAGE_ROWS}</a>' in first
    second = read(client, "?after=50")
    assert 'rel="prev" href="?#board"' in second
    assert len(listed(second)) == 10
    assert not set(listed(first)) & set(listed(second))


@pytest.mark.slow
def test_filtered_page_counts_only_matching_nodes(client: Client, season: Season) -> None:
    nodes = judge_nodes(season, count=60, rounds=1)
    others = [node.pk for node in nodes[:5]]
    Standing.objects.filter(node__in=others).update(model="huge")
    model = nodes[-1].model
    assert "50 of 55 nodes" in read(client, f"?model={model}")


def test_filters_select_nodes_without_changing_ranks(client: Client, season: Season) -> None:
    nodes = judge(season, amber=16, base_tiny=4, bold=0)
    Node.objects.filter(pk=nodes["bold"].pk).update(owner=make_owner("ada"))
    assert listed(read(client, "?search=mbe")) == ["amber", "base_tiny"]
    assert listed(read(client, "?arm=base")) == ["base_tiny"]
    assert listed(read(client, "?arm=isolated")) == []
    assert listed(read(client, "?model=huge")) == []
    html = read(client, "?owner=ada")
    assert listed(html) == ["bold", "base_tiny"]
    assert '<td class="rank num">2</td>' in row_of(html, nodes["bold"])


@pytest.mark.parametrize(
    "hide",
    [
        lambda owner: show_profile(owner, is_public=False),
        lambda owner: User.objects.update(is_active=False),
    ],
)
def test_owner_filter_finds_only_public_profiles(
    client: Client, season: Season, hide: Callable[[User], object]
) -> None:
    owner = make_owner("ada")
    Node.objects.filter(pk=judge(season, bold=4)["bold"].pk).update(owner=owner)
    assert listed(read(client, "?owner=ada")) == ["bold"]
    hide(owner)
    assert listed(read(client, "?owner=ada")) == []


def test_form_shows_the_filters_of_the_query(client: Client, season: Season) -> None:
    judge(season, amber=16)
    html = read(client, "?model=tiny&arm=swarm&search=am&window=round")
    assert 'name="model" list="models" value="tiny"' in html
    assert '<option value="swarm" selected>' in html
    assert 'name="search" value="am"' in html
    assert '<input type="hidden" name="window" value="round">' in html


@pytest.mark.slow
def test_search_opens_the_page_that_lists_the_node(client: Client, season: Season) -> None:
    judge_nodes(season, count=60, rounds=1)
    last = listed(read(client, "?after=50"))[-1]
    html = read(client, f"?find={last}")
    assert f'<tr data-node="{last}" id="found"' in html
    assert len(listed(html)) == 10
    # The chart shows the nodes of the same page.
    figure = "/leaderboard/figure.json?view=board&amp;window=season&amp;after=50"
    assert f'data-figure="{figure}"' in html


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?find=nobody-here", "No node has this name."),
        ("?find=young", "It has not been judged in this window yet."),
        ("?find=sly", "The operator quarantined it"),
        ("?find=base", "Choose the arm “untrained”"),
        ("?find=base&model=another", "your filters exclude it"),
        ("?find=amber&search=bold", "your filters exclude it"),
    ],
)
def test_search_explains_why_a_node_is_not_listed(
    client: Client, season: Season, query: str, words: str
) -> None:
    nodes = judge(season, amber=16, bold=12, base=4, sly=15)
    make_node("young")
    quarantine_node(nodes["sly"], reason="copies", actor=None, now=timezone.now())
    assert words in read(client, query)


@pytest.mark.parametrize("query", ["?arm=left", "?after=-1", "?after=x"])
def test_invalid_query_returns_400(db: None, client: Client, query: str) -> None:
    assert client.get(f"/leaderboard/{query}").status_code == 400


def test_page_beyond_the_last_row_is_empty(client: Client, season: Season) -> None:
    judge(season, amber=16)
    assert listed(read(client, f"?after={10**30}")) == []


def test_empty_filters_are_false() -> None:
    assert not Filters()
    assert Filters(search="heron")


def test_row_shows_the_attendance(client: Client, season: Season) -> None:
    early, late = make_node("early")[0], make_node("late")[0]
    make_score(make_round(season, phase=Round.Phase.CLOSED), early, correct=8)
    both = make_round(season, phase=Round.Phase.CLOSED)
    make_score(both, early, correct=8)
    make_score(both, late, correct=8)
    publish(season)
    html = read(client)
    assert '<abbr title="2 rounds">100\u202f%</abbr>' in row_of(html, early)
    assert '<abbr title="1 round">50\u202f%</abbr>' in row_of(html, late)


def test_row_has_a_sparkline_of_the_last_rounds(judged: list[Node], client: Client) -> None:
    assert '<polyline points="2.0,2.0 58.0,2.0"/>' in row_of(read(client), judged[0])
