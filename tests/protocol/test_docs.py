"""docs/protocol.md matches the code: every message, field, error code, limit and example."""

import re
from pathlib import Path

import msgspec
import pytest

from swarm_protocol import messages
from swarm_protocol.codec import decode_from_node, decode_from_server, message_types
from swarm_protocol.errors import CLOSE_CODES, FATAL, FIXES, RETURN_CODES, ErrorCode

DOCUMENT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
FROM_NODE = message_types(messages.FromNode)
FROM_SERVER = message_types(messages.FromServer)
RECORDS = {
    struct.__name__: struct
    for struct in vars(messages).values()
    if isinstance(struct, type)
    and issubclass(struct, msgspec.Struct)
    and struct.__struct_config__.tag is None
    and struct not in (msgspec.Struct, messages.NodeMessage, messages.ServerMessage)
}
EXCHANGED = re.findall(r"^(=>|<=) (.+)$", DOCUMENT, flags=re.MULTILINE)


def section(title: str) -> str:
    """Return the text below the heading of a message or record, up to the next heading."""
    found = re.search(rf"^### `{re.escape(title)}`\n(.*?)(?=^##|\Z)", DOCUMENT, re.S | re.M)
    assert found, f"docs/protocol.md has no section ### `{title}`"
    return found[1]


def first_cells(text: str) -> list[str]:
    """Return the first cell of each table row whose cell is code, such as a field's name."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize("tag", FROM_NODE)
def test_every_node_message_has_an_example_that_decodes(tag: str) -> None:
    [example] = re.findall(r"```json\n(.*?)\n```", section(tag), flags=re.S)
    assert type(decode_from_node(example)) is FROM_NODE[tag]


@pytest.mark.parametrize("tag", FROM_SERVER)
def test_every_server_message_has_a_complete_example_that_decodes(tag: str) -> None:
    [example] = re.findall(r"```json\n(.*?)\n```", section(tag), flags=re.S)
    assert type(decode_from_server(example)) is FROM_SERVER[tag]
    shown = set(msgspec.json.decode(example))
    assert shown == {"type", *msgspec.structs.asdict(decode_from_server(example))}


@pytest.mark.parametrize(
    ("title", "struct"),
    {**FROM_NODE, **FROM_SERVER, **RECORDS}.items(),
    ids=lambda value: str(value),
)
def test_every_field_is_documented(title: str, struct: type[msgspec.Struct]) -> None:
    assert first_cells(section(title)) == list(struct.__struct_fields__)


@pytest.mark.parametrize(("direction", "frame"), EXCHANGED)
def test_every_frame_of_the_example_conversations_decodes(direction: str, frame: str) -> None:
    decode = decode_from_node if direction == "=>" else decode_from_server
    assert decode(frame)


def test_example_conversations_have_both_directions() -> None:
    assert {direction for direction, _ in EXCHANGED} == {"=>", "<="}


def test_every_documented_message_exists() -> None:
    titles = set(re.findall(r"^### `([^`]+)`", DOCUMENT, flags=re.MULTILINE))
    assert titles == {*FROM_NODE, *FROM_SERVER, *RECORDS}


def test_error_table_lists_all_codes_with_their_fixes() -> None:
    errors = DOCUMENT.split("## Errors")[1].split("## Close codes")[0]
    rows = re.findall(
        r"^\| `(\S+)` \| (yes|no|for a while) \| (.+) \|$", errors, flags=re.MULTILINE
    )
    ends = dict.fromkeys(RETURN_CODES, "for a while") | dict.fromkeys(FATAL, "yes")
    assert rows == [(c, ends.get(c, "no"), FIXES[c]) for c in ErrorCode]


@pytest.mark.parametrize(("code", "close_code"), (CLOSE_CODES | RETURN_CODES).items())
def test_every_close_code_is_documented(code: ErrorCode, close_code: int) -> None:
    closing = DOCUMENT.split("## Close codes")[1]
    assert re.search(rf"^\| {close_code} \|.*`{re.escape(code)}`", closing, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "limit",
    [
        messages.MAX_COMPLETION_CHARS,
        messages.MAX_COMPLETIONS,
        messages.MAX_ROLLOUTS,
        messages.MAX_REQUESTED,
        messages.MAX_ANSWERS,
        messages.MAX_USED,
        messages.MAX_REASONS,
    ],
)
def test_every_limit_is_documented(limit: int) -> None:
    limits = DOCUMENT.split("## Frames and limits")[1].split("## Messages from the node")[0]
    assert re.search(rf"\b{limit:,}\b", limits)
