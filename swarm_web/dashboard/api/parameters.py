"""Parameters of operations, with the words and examples of the OpenAPI document."""

from typing import Any

from pydantic import Field
from pydantic.fields import FieldInfo

# What nodes, datasets and cursors are made of.
NAME = r"^[A-Za-z0-9_\-]*$"
# Text that the database can hold.
TEXT = r"^[^\x00]*$"


def parameter(words: str, *, example: str | int | None = None, **bounds: Any) -> FieldInfo:
    """Describe a parameter; `bounds` are pydantic's, such as `ge` and `max_length`.

    The words are given as a part of the schema because ninja forgets the description of a
    parameter that has a default.
    """
    told: dict[str, Any] = {"description": words}
    if example is not None:
        told["example"] = example
    info: FieldInfo = Field(json_schema_extra=told, **bounds)
    return info
