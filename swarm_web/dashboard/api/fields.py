"""The base class of the API's schemas, and the field types that several schemas share.

The descriptions and examples appear in the OpenAPI document.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasGenerator, AliasPath, BaseModel, ConfigDict, Field


class ReportSchema(BaseModel):
    """Part of a response, read from the attributes of a report or a model.

    Plain pydantic: django-ninja's `Schema` wraps every object that it reads in another one, which
    takes twice as long for a leaderboard of thousands of nodes.
    """

    model_config = ConfigDict(from_attributes=True)


def describe(description: str, *examples: object) -> Any:
    """Return a field with a description and examples of its values."""
    return Field(description=description, examples=list(examples) or None)


def at(path: str, description: str = "", *examples: object) -> Any:
    """Return a field whose value is read from a path of attributes, such as `node.name`."""
    words: dict[str, Any] = (
        {"description": description, "examples": list(examples) or None} if description else {}
    )
    return Field(validation_alias=AliasPath(*path.split(".")), **words)


def read_under(**parts: Iterable[str]) -> ConfigDict:
    """Return the configuration of a schema that reads some fields from parts of a report.

    `parts` maps an attribute of the report to the names of the fields that are read from it: with
    `node=["title"]` the field `title` is read from `report.node.title`.
    """
    paths = {name: AliasPath(part, name) for part, names in parts.items() for name in names}

    def find(name: str) -> str | AliasPath:
        return paths.get(name, name)

    return ConfigDict(alias_generator=AliasGenerator(validation_alias=find))


NodeName = Annotated[str, describe("The node's name, unique on this site.", "amber-quiet-heron")]
Title = Annotated[
    str,
    describe(
        "What the node's owner calls it, plain text of at most 64 characters; often "
        "empty. Others may have the same.",
        "Kitchen laptop",
    ),
]
RoundNumber = Annotated[int, describe("The round's number, unique on this site.", 128)]
SeasonName = Annotated[str, describe("The season's name.", "Autumn")]
Model = Annotated[
    str,
    describe("The model as its node declares it.", "Qwen/Qwen2.5-0.5B-Instruct"),
]
Parameters = Annotated[int, describe("How many weights the model has, as declared.", 494_032_768)]
Arm = Annotated[str, describe("`swarm`, `isolated` or `base` (untrained).", "swarm")]
Score = Annotated[float, describe("Judge score: macro pass@1, a fraction of one.", 0.4375)]
Interval = Annotated[
    tuple[float, float],
    describe("Interval at 95 %: low and high, fractions of one.", [0.28, 0.61]),
]
Answered = Annotated[int, describe("How many questions count.", 64)]
Cells = Annotated[
    dict[str, tuple[int, int]],
    describe("Dataset -> [solved, counted].", {"chain_sum": [14, 32]}),
]
Moment = Annotated[datetime, describe("ISO 8601 in UTC.", "2026-11-21T09:05:01Z")]
Rank = Annotated[
    tuple[int, int] | None,
    describe(
        "Best and worst rank over the season; null while `remark` says why there is "
        "none, and in the other windows.",
        [3, 5],
    ),
]
Remark = Annotated[
    str,
    describe(
        "Why the node is not ranked: `too_few`, `often_absent`, `base`, `quarantined`; else empty.",
        "",
    ),
]
Connected = Annotated[bool, describe("Whether the node is connected.", True)]
OverBase = Annotated[
    float | None,
    describe("Score minus that of the same model untrained; null where none was judged.", 0.11),
]
Next = Annotated[
    str | None,
    describe("The `cursor` of the next page; null on the last page.", "WzEyOF0"),
]


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    code: str = describe("Stable, for programs.", "query.invalid")
    message: str = describe("What happened.", "limit: Input should be > 0")
    fix: str = describe("What to do.", "See /api/docs for the parameters.")
