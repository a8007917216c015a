"""Test the lab's pages, and its answer on the home page and on Compare."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from tests.dashboard.lab_reports import (
    make_answer,
    make_comparison,
    make_finding,
    publish_sharing,
    write_report,
    write_summary,
)

pytestmark = pytest.mark.django_db
SAID = (
    "<bdi>4/4</bdi> against <bdi>8/0</bdi>: +117\u202f% cumulative own reward (95 % interval "
    "+90\u202f% to +150\u202f%, n = 6 paired seeds, <bdi>p = .031</bdi>)."
)


def read(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("path", ["/", "/compare/", "/lab/"])
def test_answer_has_its_figures_and_a_link_to_the_report(
    lab: Path, client: Client, path: str
) -> None:
    publish_sharing(lab)
    html = read(client, path)
    assert "<b>Yes, where rewards are rare.</b>" in html
    assert SAID in html
    assert ('href="/lab/sharing/"' if path == "/lab/" else 'href="/lab/"') in html


@pytest.mark.parametrize("path", ["/", "/compare/", "/lab/"])
def test_answer_without_measurements_claims_nothing(lab: Path, client: Client, path: str) -> None:
    assert "Not measured yet." in read(client, path)


@pytest.mark.parametrize("path", ["/", "/compare/", "/lab/"])
@pytest.mark.parametrize("file", ["summary.json", "sharing/report.json"])
def test_invalid_file_breaks_no_page(lab: Path, client: Client, path: str, file: str) -> None:
    publish_sharing(lab)
    (lab / file).write_text('{"sparse": 1')
    read(client, path)


def test_first_heading_contains_the_gain(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    assert "sharing gained +117\u202f% over training alone</h1>" in read(client, "/lab/")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (make_finding(difference=-1.0, gain=0.8), "sharing hurt: −20\u202f% compared with"),
        (make_finding(p_adjusted=0.2, gain=1.1), "+10\u202f% compared with training alone"),
        (make_finding(phase="exploratory"), "+117\u202f% so far, exploratory only"),
    ],
)
def test_heading_of_other_verdicts_claims_no_gain(
    lab: Path, client: Client, finding: dict[str, object], words: str
) -> None:
    write_summary(lab, sparse=make_answer(finding))
    assert words in read(client, "/lab/")


def test_confirmed_recipe_is_named(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    html = read(client, "/lab/")
    assert "<b>A better recipe than the paper’s is confirmed.</b>" in html
    assert "<bdi>4/4 sender</bdi> against <bdi>4/4</bdi>: +50\u202f% cumulative own" in html


def test_unconfirmed_recipe_shows_in_how_many_comparisons_it_held(
    lab: Path, client: Client
) -> None:
    lost = make_answer(make_finding(), make_finding(), make_finding(holds=False))
    write_summary(lab, sparse=make_answer(make_finding()), recipe=lost)
    html = read(client, "/lab/")
    assert "did as well as predicted against the paper’s in 2 of 3 comparisons." in html


def test_unexpected_findings_are_marked(lab: Path, client: Client) -> None:
    write_summary(lab, rival=make_answer(make_finding(holds=False), make_finding()))
    html = read(client, "/lab/")
    assert "1 of 2 comparisons are as expected." in html
    assert "✗</span> not as expected (at least +94\u202f%)" in html


def test_finding_without_a_ratio_is_shown_as_a_difference(lab: Path, client: Client) -> None:
    write_summary(lab, sparse=make_answer(make_finding(gain=None, gain_low=None, gain_high=None)))
    assert "+2 cumulative own reward (95 % interval +1.6 to +2.4," in read(client, "/lab/")


def test_pages_name_the_origin_of_the_measurements(
    lab: Path, client: Client, settings: Settings
) -> None:
    publish_sharing(lab)
    assert "Measured by the operator of this site." in read(client, "/lab/")
    settings.LAB_SHIPPED = lab
    assert "Measured by this project." in read(client, "/lab/")
    assert "<dd>this project</dd>" in read(client, "/lab/sharing/")


def test_report_with_the_same_name_elsewhere_is_not_linked(
    lab: Path, tmp_path: Path, client: Client, settings: Settings
) -> None:
    publish_sharing(lab)
    other = tmp_path / "other"
    write_report(other / "a-rerun", name="sharing")
    settings.LAB_REPORTS = [lab, other]
    answer = read(client, "/lab/").split("</h1>")[1].split("<section")[0]
    assert "/lab/sharing/" in answer
    assert "/lab/a-rerun/" not in answer


def test_arms_are_shown_beside_the_papers_gains(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    html = read(client, "/lab/")
    assert 'data-label="In the paper">+94\u202f%</td>' in html
    assert 'data-figure="/lab/sharing/figure.json"' in html


def test_report_shows_question_result_and_how_to_reproduce_it(lab: Path, client: Client) -> None:
    write_report(lab / "sharing")
    html = read(client, "/lab/sharing/")
    for part in (
        "Does sharing help?</h1>",
        "4/4 gained over 8/0 in cumulative own reward.",
        "304eea48de23d3dc",
        "confirmatory",
        "Significant from round 15 to the end.",
        "40 rounds, in place of 2,000.",
        "swarm-node lab run experiment.toml --out DIR",
        'href="/lab/sharing/runs.tar.gz"',
        "abababab",
    ):
        assert part in html
    for chart in ("cumulative", "own", "held_out", "length", "mechanism", "difference", "cost"):
        assert f"figure.json?chart={chart}" in html


def test_exploratory_report_is_marked_as_no_evidence(lab: Path, client: Client) -> None:
    write_report(lab / "sharing", phase="exploratory")
    for path in ("/lab/", "/lab/sharing/"):
        assert "not evidence</span>" in read(client, path)


def test_texts_of_a_report_are_escaped(lab: Path, client: Client) -> None:
    write_report(lab / "sharing", question="<script>alert(1)</script>")
    for path in ("/lab/", "/lab/sharing/"):
        assert "<script>alert" not in read(client, path)


def test_difference_of_another_arm_can_be_selected(lab: Path, client: Client) -> None:
    write_report(lab / "sharing")
    html = read(client, "/lab/sharing/?arm=4/4%20sender")
    assert "When 4/4 sender starts to differ from 8/0" in html
    assert "chart=difference&amp;arm=4%2F4%20sender" in html
    body = client.get("/lab/sharing/figure.json?chart=difference&arm=4/4%20sender").json()
    assert body["data"][1]["name"] == "4/4 sender minus 8/0"


@pytest.mark.parametrize(
    "chart", ["cumulative", "own", "held_out", "length", "mechanism", "difference", "cost"]
)
def test_every_figure_can_be_drawn(lab: Path, client: Client, chart: str) -> None:
    write_report(lab / "sharing")
    assert client.get(f"/lab/sharing/figure.json?chart={chart}").json()["data"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("chart=none", "query.chart"),
        ("chart=poisoned", "query.chart"),
        ("chart=difference&arm=8/0", "query.arm"),
    ],
)
def test_unknown_figure_returns_400(lab: Path, client: Client, query: str, code: str) -> None:
    write_report(lab / "sharing")
    answer = client.get(f"/lab/sharing/figure.json?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_report_with_only_a_baseline_is_shown(lab: Path, client: Client) -> None:
    write_report(
        lab / "sharing", own={"8/0": 0.1}, comparisons=[], horizons=[], onsets=[], reached=[]
    )
    html = read(client, "/lab/sharing/")
    assert "chart=difference" not in html
    assert client.get("/lab/sharing/figure.json?chart=difference").status_code == 400


def test_finding_with_too_few_seeds_for_an_interval_is_marked(lab: Path, client: Client) -> None:
    alone = make_comparison(seeds=1, gain_low=None, gain_high=None, difference_low=None, p=1.0)
    finding = make_finding() | {"comparison": alone | {"p_adjusted": 1.0}}
    write_summary(lab, map=make_answer(finding))
    assert "(n = 1 paired seed, too few for an interval, <bdi>p = 1</bdi>)." in read(
        client, "/lab/"
    )


def test_invalid_report_returns_500_with_a_remedy(lab: Path, client: Client) -> None:
    (write_report(lab / "sharing") / "report.json").write_text("{}")
    answer = client.get("/lab/sharing/", headers={"Accept": "text/html"})
    html = answer.content.decode()
    assert answer.status_code == 500
    assert "lab.unreadable" in html
    assert "swarm-node lab report" in html
    assert "This report is damaged." in read(client, "/lab/")


@pytest.mark.parametrize("name", ["nowhere", "..", "experiments"])
def test_unpublished_report_returns_404(lab: Path, client: Client, name: str) -> None:
    (lab / "experiments").mkdir()
    for path in ("", "figure.json", "report.json", "runs.tar.gz"):
        assert client.get(f"/lab/{name}/{path}").status_code == 404


def test_map_shows_experiments_as_rows(lab: Path, client: Client) -> None:
    def cell(experiment: str, arm: str, gain: float) -> dict[str, object]:
        return make_finding(experiment=experiment, arm=arm, gain=gain, holds=None)

    write_summary(
        lab,
        map=make_answer(
            cell("dense", "4/4 of 2", 1.0),
            cell("dense", "4/4 of 8", 1.1),
            cell("rare", "4/4 of 8", 2.5),
        ),
    )
    html = read(client, "/lab/")
    rows = html.split("<caption>Change in cumulative own reward")[1].split("<tr>")[2:4]
    assert [row.count("<td") for row in rows] == [2, 2]
    assert "+10\u202f%" in rows[0]
    assert "+150\u202f%" in rows[1]
    assert "as was expected" not in html


def test_report_shows_when_an_arm_reaches_the_baselines_final_score(
    lab: Path, client: Client
) -> None:
    publish_sharing(lab)
    html = read(client, "/lab/sharing/")
    row = (
        html.split("Time to reach the baseline’s final score")[1]
        .split("<bdi>4/4</bdi>")[1]
        .split("</tr>")[0]
    )
    cells = [cell.split("</td>")[0] for cell in row.split('<td class="num">')[1:]]
    assert cells == ["5 of 6", "20", "61\u202f500"]


def test_report_shows_the_gain_after_fewer_rounds(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    html = read(client, "/lab/sharing/")
    row = html.split("Gain by number of rounds")[1].split("<bdi>4/4</bdi>")[1].split("</tr>")[0]
    assert [cell.split(" <")[0] for cell in row.split('<td class="num">')[1:]] == [
        "+380\u202f%",
        "+117\u202f%",
    ]
