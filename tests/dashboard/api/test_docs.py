"""The page that tells people about the read API."""

import re

import pytest
from django.test import Client

from swarm_web.dashboard.api.documents import describe_kind, make_example


def test_the_docs_name_every_operation_and_its_parameters(db: None, client: Client) -> None:
    page = client.get("/api/docs").content.decode()
    for path, methods in client.get("/api/openapi.json").json()["paths"].items():
        assert f"GET {path}</code>" in page
        for parameter in methods["get"]["parameters"]:
            assert f"<code>{parameter['name']}</code>" in page


def test_every_place_that_the_docs_point_to_is_there(db: None, client: Client) -> None:
    page = client.get("/api/docs").content.decode()
    there = set(re.findall(r' id="([^"]+)"', page))
    assert set(re.findall(r' href="#([^"]+)"', page)) <= there


def test_the_docs_ask_no_other_site_for_anything(db: None, client: Client) -> None:
    page = client.get("/api/docs").content.decode()
    assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(?:https?:)?//', page)
    assert not re.findall(r"<script>|\son\w+=", page)


def test_the_api_itself_leads_to_its_docs(db: None, client: Client) -> None:
    assert client.get("/api/").headers["Location"] == "/api/docs"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 500}, "integer 1–500"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/NodeItem"}}, "list of NodeItem"),
        ({"prefixItems": [{"type": "number"}, {"type": "number"}]}, "[number, number]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
        ({"enum": ["", "swarm", "base"]}, "swarm | base"),
    ],
)
def test_kinds_are_told_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_kind(schema) == words


def test_an_example_is_made_of_the_fields_own() -> None:
    shapes = {"Item": {"properties": {"node": {"type": "string", "examples": ["amber"]}}}}
    listed = {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}
    assert make_example(listed, shapes) == [{"node": "amber"}]
