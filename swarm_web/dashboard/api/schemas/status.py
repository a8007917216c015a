"""Answers about what the swarm does at this moment."""

from ninja import Schema
from pydantic import Field

from swarm_web.dashboard.api.schemas.fields import Moment, RoundNumber, SeasonName


class StatusOut(Schema):
    """The round that runs, and how many nodes are connected."""

    season: SeasonName | None
    round: RoundNumber | None
    phase: str = Field(
        description="`scheduled`, `open` or `scoring`; `paused` while the season opens no rounds; "
        "`manual` while its operator, who makes them by hand, has scheduled none; else `none`.",
        examples=["open"],
    )
    until: Moment | None = Field(description="When the phase ends, where that is known.")
    connected: int = Field(description="How many nodes are connected.", examples=[41])
    as_of: Moment
    client_version: str = Field(
        description="The version of swarm-node that matches this site.", examples=["0.2.0"]
    )
    protocol_version: int = Field(description="The version of the wire protocol.", examples=[1])
