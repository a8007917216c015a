"""What the API's schemas share: how they read reports, and types of fields that several have.

The descriptions and examples appear in the OpenAPI document.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasGenerator, AliasPath, BaseModel, ConfigDict, Field


class ReportSchema(BaseModel):
    """Part of an answer, read from the attributes of a report or a model.

    Plain pydantic: the `Schema` of django-ninja puts a Python object between a schema and every
    object that it reads, which takes twice as long in a leaderboard of thousands of nodes.
    """

    model_config = ConfigDict(from_attributes=True)


def at(*path: str, **described: Any) -> Any:
    """Return a field that is read at a path of attributes: `at("node", "name")` reads `node.name`.

    `described` are further arguments of pydantic's Field.
    """
    return Field(validation_alias=AliasPath(*path), **described)


def read_under(**parts: Iterable[str]) -> ConfigDict:
    """Return the configuration of a schema that reads some fields from parts of a report.

    `parts` maps an attribute of the report to the names of the fields that are read from it: with
    `node=["title"]` the field `title` is read from `report.node.title`.
    """
    paths = {name: AliasPath(part, name) for part, names in parts.items() for name in names}

    def find(name: str) -> str | AliasPath:
        return paths.get(name, name)

    return ConfigDict(alias_generator=AliasGenerator(validation_alias=find))


NodeName = Annotated[
    str, Field(description="The node's name, unique on this site.", examples=["amber-quiet-heron"])
]
Title = Annotated[
    str,
    Field(
        description="What the node's owner calls it, plain text of at most 64 characters; often "
        "empty. Others may have the same.",
        examples=["Kitchen laptop"],
    ),
]
RoundNumber = Annotated[
    int, Field(description="The round's number, unique on this site.", examples=[128])
]
SeasonName = Annotated[str, Field(description="The season's name.", examples=["Autumn"])]
Model = Annotated[
    str,
    Field(
        description="The model as its node declares it.", examples=["Qwen/Qwen2.5-0.5B-Instruct"]
    ),
]
Parameters = Annotated[
    int, Field(description="How many weights the model has, as declared.", examples=[494_032_768])
]
Arm = Annotated[
    str, Field(description="`swarm`, `isolated` or `base` (untrained).", examples=["swarm"])
]
Score = Annotated[
    float, Field(description="Judge score: macro pass@1, a fraction of one.", examples=[0.4375])
]
Interval = Annotated[
    tuple[float, float],
    Field(description="Interval at 95 %: low and high, fractions of one.", examples=[[0.28, 0.61]]),
]
Answered = Annotated[int, Field(description="How many questions count.", examples=[64])]
Cells = Annotated[
    dict[str, tuple[int, int]],
    Field(description="Dataset -> [solved, counted].", examples=[{"chain_sum": [14, 32]}]),
]
Moment = Annotated[
    datetime, Field(description="ISO 8601 in UTC.", examples=["2026-11-21T09:05:01Z"])
]
Rank = Annotated[
    tuple[int, int] | None,
    Field(
        description="Best and worst rank over the season; null while `remark` says why there is "
        "none, and in the other windows.",
        examples=[[3, 5]],
    ),
]
Remark = Annotated[
    str,
    Field(
        description="Why the node is not ranked: `too_few`, `often_absent`, `base`, `quarantined`; "
        "else empty.",
        examples=[""],
    ),
]
Connected = Annotated[bool, Field(description="Whether the node is connected.", examples=[True])]
OverBase = Annotated[
    float | None,
    Field(
        description="Score minus that of the same model untrained; null where none was judged.",
        examples=[0.11],
    ),
]
Next = Annotated[
    str | None,
    Field(
        description="The `cursor` of the next page; null on the last page.",
        examples=["WzEyOF0"],
    ),
]


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    code: str = Field(description="Stable, for programs.", examples=["query.invalid"])
    message: str = Field(description="What happened.", examples=["limit: Input should be > 0"])
    fix: str = Field(description="What to do.", examples=["See /api/docs for the parameters."])
