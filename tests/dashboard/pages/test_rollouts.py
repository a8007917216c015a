"""Test the rollouts pages: search, cards, one rollout, and the flow diagram."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge.models import Season
from swarm_web.dashboard.reports.rollouts import PAGE_CARDS
from tests.factories import make_archived_rollout, make_exchange, make_node, make_season

HOUR = timedelta(hours=1)


def read(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode()


def shown(client: Client, query: str = "") -> list[int]:
    """Return the distinct keys of the rollouts on a page, in order."""
    html = read(client, f"/rollouts/{query}")
    return [int(pk) for pk in dict.fromkeys(re.findall(r'href="/rollouts/(\d+)/"', html))]


def test_checked_rollouts_are_listed_from_newest_to_oldest(season: Season, client: Client) -> None:
    author, now = make_node()[0], timezone.now()
    old = make_archived_rollout(season, author, published_at=now - HOUR)
    new = make_archived_rollout(season, author, published_at=now)
    make_archived_rollout(season, author, solved=None)
    assert shown(client) == [new.pk, old.pk]


def test_pages_contain_rollouts_of_equal_time_once(season: Season, client: Client) -> None:
    author, now = make_node()[0], timezone.now()
    made = [make_archived_rollout(season, author, published_at=now) for _ in range(PAGE_CARDS + 3)]
    first = read(client, "/rollouts/")
    (later,) = re.findall(r'rel="next" href="([^"]+)"', first)
    assert shown(client) + shown(client, later) == [rollout.pk for rollout in reversed(made)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=apples", "apples"),
        ("?q=pears+-apples", "pears"),
        ("?q=%22many+pears%22", "pears"),
        ("?outcome=wrong", "pears"),
        ("?outcome=mixed", "apples"),
        ("?author=ann", "apples"),
        ("?dataset=spell_backward", "pears"),
        ("?model=big", "pears"),
    ],
)
def test_filters_select_matching_rollouts(
    season: Season, client: Client, query: str, expected: str
) -> None:
    ann, bob = make_node("ann")[0], make_node("bob")[0]
    bob.model = "big"
    made = {
        "apples": make_archived_rollout(season, ann, question="How many apples?", solved=1),
        "pears": make_archived_rollout(
            season, bob, question="How many pears?", solved=0, dataset="spell_backward"
        ),
    }
    assert shown(client, query) == [made[expected].pk]


def test_link_to_the_next_page_preserves_the_filter(season: Season, client: Client) -> None:
    author = make_node("ann")[0]
    for _ in range(PAGE_CARDS + 1):
        make_archived_rollout(season, author)
    assert 'href="?author=ann&amp;after=' in read(client, "/rollouts/?author=ann")


def test_rollouts_of_another_season_can_be_selected(season: Season, client: Client) -> None:
    season.state = Season.State.ENDED
    season.save()
    old = make_archived_rollout(season, make_node()[0])
    make_season("Winter")
    assert shown(client) == []
    assert shown(client, f"?season={season.name}") == [old.pk]


@pytest.mark.parametrize(
    "query",
    ["?outcome=maybe", "?after=x", "?after=999999999999999999-1", "?season=none", "?after=1-1%0A"],
)
def test_invalid_query_returns_400_with_a_fix(season: Season, client: Client, query: str) -> None:
    response = client.get(f"/rollouts/{query}")
    assert response.status_code == 400
    assert response.json()["fix"]


@pytest.mark.parametrize("words", ["%22", "-", "((", "a:*", "%F0%9F%90%A6"])
def test_search_accepts_any_characters(season: Season, client: Client, words: str) -> None:
    make_archived_rollout(season, make_node()[0])
    read(client, f"/rollouts/?q={words}")


def test_question_and_completions_are_escaped(season: Season, client: Client) -> None:
    rollout = make_archived_rollout(season, make_node()[0], question="<script>alert(1)</script>")
    for path in ("/rollouts/", f"/rollouts/{rollout.pk}/"):
        html = read(client, path)
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html
        assert "I think so.\n&lt;answer&gt;2&lt;/answer&gt;" in html


def test_card_shows_author_learners_and_right_completions(season: Season, client: Client) -> None:
    author, learner = make_node("ann")[0], make_node("bob")[0]
    make_archived_rollout(season, author, solved=1, learners=[learner])
    html = read(client, "/rollouts/")
    assert 'href="/nodes/ann/"' in html
    assert 'href="/nodes/bob/"' in html
    assert "1 of 2 completions are right" in html


def test_card_shows_one_right_and_one_wrong_completion(season: Season, client: Client) -> None:
    rollout = make_archived_rollout(season, make_node()[0], solved=1)
    wrong = {**rollout.completions[1], "text": "wrong one"}
    right = {**rollout.completions[0], "text": "right one"}
    rollout.completions = [wrong, wrong, wrong, right]
    rollout.total = 4
    rollout.save()
    listed, single = read(client, "/rollouts/"), read(client, f"/rollouts/{rollout.pk}/")
    assert (listed.count("wrong one"), listed.count("right one")) == (1, 1)
    assert (single.count("wrong one"), single.count("right one")) == (3, 1)


def test_unchecked_rollout_returns_404(season: Season, client: Client) -> None:
    rollout = make_archived_rollout(season, make_node()[0], solved=None)
    assert client.get(f"/rollouts/{rollout.pk}/").status_code == 404


@pytest.mark.parametrize("path", ["/rollouts/", "/rollouts/flow/"])
def test_pages_without_rollouts_are_marked_as_empty(db: None, client: Client, path: str) -> None:
    assert 'class="empty"' in read(client, path)


@pytest.mark.parametrize("path", ["/rollouts/", "/rollouts/flow/"])
def test_number_of_queries_is_independent_of_nodes_and_rollouts(
    season: Season, client: Client, path: str
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            read(client, path)
        return len(queries)

    def share(nodes: int) -> None:
        made = [make_node()[0] for _ in range(nodes)]
        for author in made[1:]:
            make_archived_rollout(season, author, learners=made)
            make_exchange(season, author, made[0], used=1)

    share(2)
    few = count()
    share(9)
    assert count() == few


def test_full_text_search_uses_its_index(season: Season) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute(
            "EXPLAIN SELECT id FROM relay_archivedrollout WHERE "
            "to_tsvector('simple'::regconfig, COALESCE(question, '')) "
            "@@ websearch_to_tsquery('simple'::regconfig, 'pears')"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "archive_by_words" in plan


def test_flow_lists_the_strongest_links_first(season: Season, client: Client) -> None:
    ann, bob, cat = (make_node(name)[0] for name in ("ann", "bob", "cat"))
    make_exchange(season, ann, bob, used=3)
    make_exchange(season, bob, cat, used=8)
    html = read(client, "/rollouts/flow/")
    assert "cat learned most from bob: 8 rollouts" in html
    table = html[html.index("<tbody>") :]
    assert table.index("/nodes/cat/") < table.index("/nodes/ann/")
    assert html.count('class="band"') == 2


def test_flow_of_another_hour_can_be_selected(season: Season, client: Client) -> None:
    ann, bob = make_node("ann")[0], make_node("bob")[0]
    before = timezone.now() - HOUR
    make_exchange(season, ann, bob, used=3, hour=before)
    assert "No node learned" in read(client, "/rollouts/flow/")
    assert "bob learned most from ann" in read(client, f"/rollouts/flow/?hour={before:%Y-%m-%dT%H}")


@pytest.mark.parametrize(
    "hour", ["now", "2026-13-01T00", "0001-01-01T00", "9999-12-31T23", "2026-01-01T1"]
)
def test_invalid_hour_returns_400(season: Season, client: Client, hour: str) -> None:
    assert client.get(f"/rollouts/flow/?hour={hour}").status_code == 400


def test_right_to_left_model_name_is_directionally_isolated(season: Season, client: Client) -> None:
    author, _ = make_node(model="مدل")
    rollout = make_archived_rollout(season, author)
    assert "<bdi>مدل</bdi>, step 1" in read(client, f"/rollouts/{rollout.pk}/")
