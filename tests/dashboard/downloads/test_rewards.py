"""Test the reward downloads: equal to the API, streamed, filtered, and safe in spreadsheets."""

import csv
import io
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils import timezone
from pyarrow.parquet import read_table

from judge.models import Round, Score, Season
from judge.services.oversight import quarantine_node
from swarm_web.dashboard.downloads import views
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_node, make_round, make_score, make_season

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]

HEADER = "season,round,node,model,arm,score,interval_low,interval_high,n,status,reason,closed_at"


async def fetch(path: str) -> bytes:
    answer = await AsyncClient().get(path)
    assert isinstance(answer, StreamingHttpResponse)
    assert answer.is_async, "a synchronous iterator would be read completely before the first byte"
    return b"".join([part async for part in answer])


async def download(path: str) -> str:
    return (await fetch(path)).decode()


async def read_rows(path: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(await download(path))))


async def make_judged_season() -> Season:
    season = await sync_to_async(make_season)("Autumn")
    await sync_to_async(judge_nodes)(season, count=3)
    return season


async def test_columns_are_in_the_documented_order() -> None:
    await make_judged_season()
    text = await download("/downloads/rewards.csv")
    assert text.splitlines()[0] == HEADER


async def test_csv_has_the_numbers_of_the_api() -> None:
    season = await make_judged_season()
    latest = await season.rounds.alatest("number")
    rows = await read_rows(f"/rounds/{latest.number}/rewards.csv")
    in_api = (await AsyncClient().get(f"/api/v1/rounds/{latest.number}")).json()["scores"]
    in_csv = {
        r["node"]: (float(r["score"]), float(r["interval_low"]), float(r["interval_high"]), r["n"])
        for r in rows
    }
    assert in_csv == {
        t["node"]: (t["score"], t["interval"][0], t["interval"][1], str(t["n"])) for t in in_api
    }


async def test_absent_node_has_a_row_without_a_score() -> None:
    season = await make_judged_season()
    judge_round = await season.rounds.alatest("number")
    node, _ = await sync_to_async(make_node)("late-owl")
    await Score.objects.acreate(
        round=judge_round, node=node, status="absent", reason="not_offered", arm="swarm"
    )
    (row,) = await read_rows("/downloads/rewards.csv?node=late-owl")
    assert (row["score"], row["status"], row["reason"]) == ("", "absent", "not_offered")


async def test_rows_of_a_quarantined_node_have_status_quarantined() -> None:
    season = await make_judged_season()
    scored = await Score.objects.filter(round__season=season).select_related("node").alast()
    assert scored is not None
    name = scored.node.name
    await sync_to_async(quarantine_node)(
        scored.node, reason="copies", actor=None, now=timezone.now()
    )
    rows = await read_rows("/downloads/rewards.csv")
    remarks = {(row["status"], row["reason"]) for row in rows if row["node"] == name}
    assert remarks == {("quarantined", "quarantined")}
    assert {row["status"] for row in rows if row["node"] != name} == {"scored"}


async def test_mean_of_a_nodes_scored_rows_equals_its_leaderboard_score() -> None:
    season = await make_judged_season()
    board = (await AsyncClient().get("/api/v1/leaderboard")).json()
    scores: dict[str, list[float]] = {}
    for row in await read_rows(f"/downloads/rewards.csv?season={season.name}"):
        if row["status"] == "scored" and row["arm"] != "base":
            scores.setdefault(row["node"], []).append(float(row["score"]))
    assert {node: sum(own) / len(own) for node, own in scores.items()} == {
        item["node"]: item["score"] for item in board["items"]
    }


async def test_round_that_has_not_closed_has_no_rows() -> None:
    season = await make_judged_season()
    judge_round = await sync_to_async(make_round)(season, phase=Round.Phase.SCORING)
    node, _ = await sync_to_async(make_node)()
    await sync_to_async(make_score)(judge_round, node, correct=3)
    assert await read_rows(f"/rounds/{judge_round.number}/rewards.csv") == []


async def test_filters_select_rows() -> None:
    season = await make_judged_season()
    numbers = [r.number async for r in season.rounds.order_by("number")]
    rows = await read_rows(f"/downloads/rewards.csv?arm=swarm&round_from={numbers[1]}")
    assert {int(row["round"]) for row in rows} == {numbers[1]}
    assert await read_rows("/downloads/rewards.csv?season=Winter") == []


@pytest.mark.parametrize(
    ("query", "code"),
    [("colour=red", "query.unknown_filter"), ("round_from=soon", "query.invalid_filter")],
)
async def test_invalid_filter_returns_400_with_a_code(query: str, code: str) -> None:
    answer = await AsyncClient().get(f"/downloads/rewards.csv?{query}")
    assert answer.status_code == 400
    assert answer.json()["code"] == code


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
async def test_cells_that_look_like_formulas_are_escaped(start: str) -> None:
    season = await sync_to_async(make_season)("Autumn")
    judge_round = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    node, _ = await sync_to_async(make_node)(model=start)
    await sync_to_async(make_score)(judge_round, node, correct=3)
    (row,) = await read_rows("/downloads/rewards.csv")
    assert row["model"] == f"'{start}"


@pytest.mark.slow  # imports pandas
async def test_all_formats_have_equal_rows() -> None:
    await make_judged_season()
    rows = await read_rows("/downloads/rewards.csv")
    lines = [json.loads(line) for line in (await fetch("/downloads/rewards.jsonl")).splitlines()]
    table = read_table(io.BytesIO(await fetch("/downloads/rewards.parquet")))
    assert table.schema.field("closed_at").type.tz == "UTC"
    assert [format_like_csv(line) for line in lines] == rows
    assert [
        format_like_csv({**row, "closed_at": row["closed_at"].isoformat().replace("+00:00", "Z")})
        for row in table.to_pylist()
    ] == rows


def format_like_csv(row: dict[str, Any]) -> dict[str, str]:
    return {name: "" if value is None else str(value) for name, value in row.items()}


async def test_parquet_without_rows_has_the_columns() -> None:
    await sync_to_async(make_season)("Autumn")
    table = read_table(io.BytesIO(await fetch("/downloads/rewards.parquet")))
    assert (table.num_rows, ",".join(table.column_names)) == (0, HEADER)


async def test_etag_is_valid_until_the_next_round_closes() -> None:
    season = await make_judged_season()
    client = AsyncClient()
    version = (await client.get("/downloads/rewards.csv"))["ETag"]
    again = await client.get("/downloads/rewards.csv", headers={"If-None-Match": version})
    assert again.status_code == 304
    await sync_to_async(judge_nodes)(season, count=1, rounds=1)
    after = await client.get("/downloads/rewards.csv", headers={"If-None-Match": version})
    assert after.status_code == 200


async def test_etag_is_not_valid_after_an_update_of_the_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = AsyncClient()
    version = (await client.get("/downloads/rewards.csv"))["ETag"]
    monkeypatch.setattr(views, "CLIENT_VERSION", "99.0.0")
    after = await client.get("/downloads/rewards.csv", headers={"If-None-Match": version})
    assert after.status_code == 200
