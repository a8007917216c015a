"""Test that a running server conforms to its OpenAPI document for arbitrary requests."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from openapi_spec_validator import validate
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from judge.models import Round
from swarm_web.dashboard.api.documents import describe_shapes
from tests.dashboard.conftest import judge_nodes
from tests.dashboard.lab_reports import publish_sharing
from tests.factories import make_node, make_round, make_season
from tests.web import serving

# All checks of schemathesis, with generated requests that conform to the document or do not.
SCHEMATHESIS = [sys.executable, "-m", "schemathesis.cli", "run", "--checks", "all"]
SCHEMATHESIS += [
    "--wait-for-schema",
    "60",
    "--max-examples",
    "5",
    "--seed",
    "1",
    "--mode",
    "all",
    "--no-color",
]


def test_openapi_document_is_valid(db: None, client: Client) -> None:
    validate(client.get("/api/openapi.json").json())


def test_openapi_document_without_paths_is_invalid() -> None:
    with pytest.raises(OpenAPIValidationError):
        validate({"openapi": "3.1.0", "info": {"title": "none", "version": "1"}})


def test_every_operation_documents_its_error_responses(db: None, client: Client) -> None:
    document = client.get("/api/openapi.json").json()
    for path, methods in document["paths"].items():
        assert methods.keys() == {"get"}, path
        assert {"304", "400", "404", "405", "429"} <= methods["get"]["responses"].keys(), path


def test_operation_ids_are_the_names_of_the_views(db: None, client: Client) -> None:
    document = client.get("/api/openapi.json").json()
    named = {methods["get"]["operationId"] for methods in document["paths"].values()}
    assert {"get_leaderboard", "list_nodes", "get_round", "list_answers"} <= named
    assert len(named) == len(document["paths"])


def test_every_field_has_a_description(db: None, client: Client) -> None:
    shapes = describe_shapes(client.get("/api/openapi.json").json())
    named = {shape.name for shape in shapes}
    silent = [
        f"{shape.name}.{field.name}"
        for shape in shapes
        for field in shape.fields
        if not field.words and not any(name in field.kind for name in named)
    ]
    assert silent == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_schemathesis_finds_no_failing_case(tmp_path: Path) -> None:
    season = make_season("Autumn")
    # The document uses this node and this round as examples.
    node, _ = make_node("amber-quiet-heron")
    judge_nodes(season, count=5, rounds=3, also=[node])
    Round.objects.filter(pk=season.rounds.latest("number").pk).update(number=128)
    make_round(season, phase=Round.Phase.OPEN)
    publish_sharing(tmp_path)
    with serving(API_REQUESTS_PER_MINUTE="0", LAB_REPORTS=str(tmp_path)) as site:
        run = subprocess.run(
            [*SCHEMATHESIS, f"{site}/api/openapi.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
        )
    assert run.returncode == 0, run.stdout + run.stderr
