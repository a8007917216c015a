"""Extracts from the OpenAPI document what the page `/api/docs` shows."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

# Maximum depth of nested examples; deeper values are null.
_DEPTH = 6


@dataclass(frozen=True)
class FieldDoc:
    """A parameter of an operation, or a field of a schema.

    `kind` is its type in words, `words` its description, and `default` a parameter's default.
    """

    name: str
    kind: str
    words: str
    default: str = ""


@dataclass(frozen=True)
class ShapeDoc:
    """A named schema, such as the schema of a response; `words` is its description."""

    name: str
    words: str
    fields: list[FieldDoc]


@dataclass(frozen=True)
class OperationDoc:
    """One operation; `anchor` is its element id on the page.

    `answer` is the name of the schema of the response with status 200, and `example` an example of
    this response as JSON text. `refusals` are (status, meaning) of all other responses.
    """

    anchor: str
    path: str
    summary: str
    parameters: list[FieldDoc]
    answer: str
    example: str
    refusals: list[tuple[str, str]]


def describe_operations(document: Json) -> list[OperationDoc]:
    """Return every operation of an OpenAPI document, in the document's order."""
    shapes = document["components"]["schemas"]
    return [
        _describe_operation(path, operation, shapes)
        for path, methods in document["paths"].items()
        for operation in methods.values()
    ]


def describe_shapes(document: Json) -> list[ShapeDoc]:
    """Return every named schema of an OpenAPI document, sorted by name."""
    return [
        ShapeDoc(name, shape.get("description", ""), list(_describe_fields(shape)))
        for name, shape in sorted(document["components"]["schemas"].items())
    ]


def _describe_operation(path: str, operation: Json, shapes: Json) -> OperationDoc:
    answers = {str(status): response for status, response in operation["responses"].items()}
    schema = answers["200"]["content"]["application/json"]["schema"]
    example = json.dumps(make_example(schema, shapes), indent=2, ensure_ascii=False)
    return OperationDoc(
        anchor=operation["operationId"],
        path=path,
        summary=operation["description"],
        parameters=[_describe_parameter(parameter) for parameter in operation["parameters"]],
        answer=_name(schema),
        example=example,
        refusals=[
            (code, response["description"]) for code, response in answers.items() if code != "200"
        ],
    )


def _describe_parameter(parameter: Json) -> FieldDoc:
    schema = parameter["schema"]
    return FieldDoc(
        name=parameter["name"],
        kind=describe_kind(schema),
        words=parameter.get("description", ""),
        default=str(schema.get("default", "")),
    )


def _describe_fields(shape: Json) -> Iterator[FieldDoc]:
    for name, schema in shape.get("properties", {}).items():
        yield FieldDoc(name, describe_kind(schema), _find_words(schema))


def _find_words(schema: Json) -> str:
    """Return the description of a schema, else of one of its alternatives or items, else ""."""
    candidates = [schema, *schema.get("anyOf", ()), schema.get("items", {})]
    return next((str(each["description"]) for each in candidates if "description" in each), "")


def describe_kind(schema: Json) -> str:
    """Return the type of a schema in words, such as `list of string` or `integer or null`."""
    if "$ref" in schema:
        return _name(schema)
    if "anyOf" in schema:
        return " or ".join(describe_kind(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(describe_kind(item) for item in schema['prefixItems'])}]"
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {describe_kind(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {describe_kind(schema['additionalProperties'])}"
    return " ".join([schema.get("format", kind), *_describe_bounds(schema)])


def _describe_bounds(schema: Json) -> list[str]:
    """Return a list of one text: the lowest and the highest number, with a dash between them.

    The list is empty if the schema does not state both ends, or if the upper end is only the
    largest number that a database column can hold.
    """
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None or high is None or high >= 2**15 - 1:
        return []
    return [f"{low}–{high}"]


def make_example(schema: Json, shapes: Json, *, depth: int = 0) -> Any:
    """Return an example of a value that fits a schema.

    This is the schema's first example. If the schema has none, the value is made from the examples
    of the schema's parts; if `depth` is above _DEPTH, it is None instead. `shapes` are the
    document's named schemas, and `depth` is the number of enclosing schemas.
    """
    if examples := schema.get("examples"):
        return examples[0]
    if depth > _DEPTH:
        return None

    def deeper(part: Json) -> Any:
        return make_example(part, shapes, depth=depth + 1)

    if "$ref" in schema:
        return deeper(shapes[_name(schema)])
    if "anyOf" in schema:
        return deeper(schema["anyOf"][0])
    if "prefixItems" in schema:
        return [deeper(item) for item in schema["prefixItems"]]
    if "properties" in schema:
        return {name: deeper(field) for name, field in schema["properties"].items()}
    if schema.get("type") == "array":
        return [deeper(schema["items"])]
    empty: dict[str, Any] = {"object": {}, "string": "", "integer": 0, "number": 0.0}
    return empty.get(schema.get("type", ""))


def _name(schema: Json) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]
