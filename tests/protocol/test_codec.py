"""Encoding and decoding: the codec raises only UndecodableError, whatever the input."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swarm_protocol import messages
from swarm_protocol.codec import (
    MAX_FRAME_BYTES,
    UndecodableError,
    decode_from_node,
    decode_from_server,
    encode,
    message_types,
)
from swarm_protocol.errors import FATAL, FIXES, ErrorCode
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.version import PROTOCOL_VERSION

settings.register_profile("protocol", deadline=None, database=None)
settings.load_profile("protocol")

NODE_TAGS = sorted(message_types(messages.FromNode))
TEXT_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXT = st.text(TEXT_CHARACTERS, max_size=50)
NAMES = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc", "Zl", "Zp", "Mn", "Me"],
        exclude_characters="\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    ),
    min_size=1,
    max_size=50,
)
IDS = st.from_regex(messages.Id.__metadata__[0].pattern, fullmatch=True)  # type: ignore[attr-defined]
COUNTS = st.integers(0, 2**53)
INDICES = st.integers(0, 2**31 - 1)
SHARES = st.floats(0, 1)
FINISH = st.sampled_from(["stop", "length"])
SHORT_TEXT = st.text(TEXT_CHARACTERS, max_size=5)
VALUES = st.booleans() | st.integers(-(2**53), 2**53) | SHORT_TEXT | st.lists(NAMES)
SPECS = st.builds(
    messages.TaskSpec,
    dataset=NAMES,
    config=st.dictionaries(NAMES, VALUES, max_size=3),
    seed=INDICES,
    index=INDICES,
    generator=NAMES,
)
COMPLETIONS = st.builds(
    messages.Completion,
    text=TEXT,
    finish_reason=FINISH,
    logprobs=st.none() | st.just("AAIABA=="),
    logprob=st.none() | st.floats(-1e6, 0),
)
ROLLOUTS = st.builds(
    messages.Rollout,
    id=IDS,
    task=SPECS,
    completions=st.lists(COMPLETIONS, min_size=2, max_size=4),
    model=NAMES,
    step=COUNTS,
    tokenizer=NAMES,
)
ANSWERS = st.builds(messages.AnswerText, question=IDS, text=TEXT, finish_reason=FINISH)
NODE_MESSAGES = st.one_of(
    st.builds(
        messages.Hello,
        id=IDS,
        protocol=st.just(PROTOCOL_VERSION),
        client=NAMES,
        model=NAMES,
        tokenizer=NAMES,
        arm=st.sampled_from(["swarm", "isolated", "base"]),
        parameters=COUNTS,
        hardware=st.none() | st.builds(messages.Hardware, device=NAMES, memory=COUNTS),
    ),
    st.builds(
        messages.PublishRollouts,
        id=IDS,
        rollouts=st.lists(ROLLOUTS, min_size=1, max_size=3),
        informative=st.lists(IDS, max_size=3),
    ),
    st.builds(
        messages.RequestRollouts,
        id=IDS,
        count=st.integers(1, 64),
        logprobs=st.booleans(),
        prefer=st.sampled_from(get_args(messages.Preference)),
    ),
    st.builds(
        messages.ReportTraining,
        id=IDS,
        step=COUNTS,
        training_reward=SHARES,
        informative_share=SHARES,
        local_used=COUNTS,
        external_used=COUNTS,
        external_dropped=st.dictionaries(IDS, COUNTS, max_size=3),
        used=st.lists(st.builds(messages.RolloutName, node=NAMES, id=IDS), max_size=3),
        reflection=st.dictionaries(st.sampled_from(get_args(messages.Reflection)), SHARES),
    ),
    st.builds(messages.RequestRound, id=IDS),
    st.builds(messages.RequestQuestions, id=IDS, round=COUNTS),
    st.builds(
        messages.SubmitAnswers,
        id=IDS,
        round=COUNTS,
        answers=st.lists(ANSWERS, min_size=1, max_size=3),
    ),
    st.builds(messages.RequestStanding, id=IDS),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def refusal_of(frame: str | bytes) -> UndecodableError | None:
    """Return the refusal of a frame, if any. Other exceptions than UndecodableError propagate."""
    try:
        decode_from_node(frame)
    except UndecodableError as refusal:
        return refusal
    return None


# ---- arbitrary input


@given(st.binary())
@example(b"\xff")
@example(b'{"type":"round.request","id":"\xff"}')
def test_random_bytes_are_refused(frame: bytes) -> None:
    assert refusal_of(frame) is not None


@given(st.text(st.characters()))
@example("\ud800")
@example("[" * 100_000)
@example('{"type":"round.request","id":"a","x":' + "[" * 100_000)
@example('{"type":"hello","id":"a","protocol":' + "9" * 5000 + "}")
def test_random_text_is_refused(frame: str) -> None:
    assert refusal_of(frame) is not None


@pytest.mark.slow
@given(st.sampled_from(NODE_TAGS), st.dictionaries(st.text(), JSON, max_size=5))
def test_random_body_with_a_known_type_never_breaks_the_codec(
    tag: str, body: dict[str, Any]
) -> None:
    refusal_of(json.dumps({**body, "type": tag, "id": "a"}))


@pytest.mark.slow
@given(NODE_MESSAGES, st.data())
def test_message_with_one_value_replaced_never_breaks_the_codec(
    message: messages.NodeMessage, data: st.DataObject
) -> None:
    body = json.loads(encode(message))
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(JSON)
    refusal_of(json.dumps(body))


# ---- round trips


@pytest.mark.slow
@given(NODE_MESSAGES)
def test_node_message_round_trips(message: messages.NodeMessage) -> None:
    assert decode_from_node(encode(message)) == message
    assert decode_from_node(encode(message).encode()) == message


@pytest.mark.slow
@given(ROLLOUTS, NAMES, st.floats(0, 1e6))
def test_server_message_round_trips(rollout: messages.Rollout, node: str, age_s: float) -> None:
    message = messages.RolloutsSampled(
        reply_to="a",
        rollouts=[messages.ExternalRollout(node=node, age_s=age_s, rollout=rollout)],
    )
    assert decode_from_server(encode(message)) == message


# ---- error codes


@pytest.mark.parametrize(
    ("frame", "code", "request_id"),
    [
        ("", ErrorCode.PROTOCOL_NOT_JSON, None),
        ("{", ErrorCode.PROTOCOL_NOT_JSON, None),
        ("\ud800", ErrorCode.PROTOCOL_NOT_JSON, None),
        (b"\xff", ErrorCode.PROTOCOL_NOT_JSON, None),
        (" " * (MAX_FRAME_BYTES + 1), ErrorCode.PROTOCOL_TOO_LARGE, None),
        ("é" * (MAX_FRAME_BYTES // 2 + 1), ErrorCode.PROTOCOL_TOO_LARGE, None),
        ("[]", ErrorCode.PROTOCOL_INVALID, None),
        ('{"id":"a"}', ErrorCode.PROTOCOL_INVALID, None),
        ('{"type":"x","id":"a"}', ErrorCode.PROTOCOL_UNKNOWN_TYPE, "a"),
        ('{"type":"welcome","id":"a"}', ErrorCode.PROTOCOL_UNKNOWN_TYPE, "a"),
        ('{"type":"round.request","id":"a","x":1}', ErrorCode.PROTOCOL_INVALID, "a"),
        ('{"type":"round.request","id":"a b"}', ErrorCode.PROTOCOL_INVALID, None),
        ('{"type":"round.request","id":"a\\n"}', ErrorCode.PROTOCOL_INVALID, None),
        ('{"type":"rollouts.request","id":"a","count":0}', ErrorCode.PROTOCOL_INVALID, "a"),
        ('{"type":"rollouts.request","id":"a","count":"1"}', ErrorCode.PROTOCOL_INVALID, "a"),
    ],
)
def test_refusal_has_the_error_code_and_request_id(
    frame: str | bytes, code: ErrorCode, request_id: str | None
) -> None:
    refusal = refusal_of(frame)
    assert refusal is not None
    assert (refusal.code, refusal.request_id) == (code, request_id)


def test_frame_of_the_maximum_size_is_decoded() -> None:
    frame = '{"type":"round.request","id":"a"}'
    assert decode_from_node(frame + " " * (MAX_FRAME_BYTES - len(frame)))


def test_hello_of_another_version_is_refused_as_such_despite_unknown_fields() -> None:
    frame = '{"type":"hello","id":"a","protocol":999,"news":[]}'
    refusal = refusal_of(frame)
    assert refusal is not None
    assert (refusal.code, refusal.request_id) == (ErrorCode.PROTOCOL_VERSION, "a")
    assert refusal.fatal


def test_refusal_message_is_short_for_a_large_frame() -> None:
    refusal = refusal_of(json.dumps({"type": "round.request", "id": "a", "x" * 500_000: 1}))
    assert refusal is not None
    assert len(refusal.message) < 1000


def test_client_ignores_unknown_fields() -> None:
    frame = '{"type":"training.reported","reply_to":"a","praise":"well done"}'
    assert decode_from_server(frame) == messages.TrainingReported(reply_to="a")


# ---- message types and compatibility


@pytest.mark.parametrize("struct", message_types(messages.FromNode).values())
def test_server_refuses_unknown_fields_in_every_message(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.forbid_unknown_fields
    assert struct.__struct_config__.frozen


def test_fields_missing_from_an_older_coordinator_get_defaults() -> None:
    body = {
        **{"name": "old", "seed": 1, "generator": "g", "tasks": [], "completions": 8, "local": 4},
        **{"external": 4, "max_new_tokens": 24, "temperature": 0.0},
    }
    season = msgspec.convert(body, messages.SeasonInfo)
    assert season.system_prompt == SYSTEM_PROMPT
    standing = decode_from_server(
        '{"type": "standing", "reply_to": "1", "node": "n", "rank": null, "score": null,'
        ' "interval": null, "n": 0, "rounds": 0, "external_used": 0}'
    )
    assert isinstance(standing, messages.NodeStanding)
    assert (standing.ranked, standing.published, standing.delivered_to_others) == (None, None, None)


def test_newer_fields_are_omitted_when_they_have_default_values() -> None:
    task = messages.TaskSpec("gcd", {}, 1, 1, "g")
    answers = [messages.Completion("1", "stop"), messages.Completion("2", "stop")]
    rollout = messages.Rollout("r", task, answers, "tiny", 1, "chars")
    publication = json.loads(encode(messages.PublishRollouts(id="p", rollouts=[rollout])))
    assert set(publication) == {"type", "id", "rollouts"}
    request = json.loads(encode(messages.RequestRollouts(id="r", count=4)))
    assert set(request) == {"type", "id", "count"}


def test_older_welcome_has_no_declarations_and_no_isolated_publishing() -> None:
    welcome = decode_from_server(
        '{"type": "welcome", "reply_to": "1", "protocol": 1, "server": "s", "node": "n",'
        ' "arm": "swarm", "now": "2026-01-01T12:00:00+00:00", "round": null, "season": {'
        '"name": "old", "seed": 1, "generator": "g", "tasks": [], "completions": 8, "local": 4,'
        ' "external": 4, "max_new_tokens": 24, "temperature": 0.0}}'
    )
    assert isinstance(welcome, messages.Welcome)
    assert welcome.season is not None
    assert (welcome.declarations, welcome.season.isolated_publish) == (False, False)
    assert welcome.season.sampling == []
    assert welcome.return_within == 5


def test_publication_with_too_many_declarations_is_refused() -> None:
    body = {"type": "rollouts.publish", "id": "a", "rollouts": [], "informative": ["r"] * 33}
    refusal = refusal_of(json.dumps(body))
    assert refusal is not None
    assert refusal.code == ErrorCode.PROTOCOL_INVALID


def test_message_types_have_unique_tags() -> None:
    both = [*message_types(messages.FromNode), *message_types(messages.FromServer)]
    assert len(both) == len(set(both)) == 18


def test_every_error_code_has_a_fix_and_fatal_codes_exist() -> None:
    assert set(FIXES) == set(ErrorCode)
    assert set(ErrorCode) > FATAL


# ---- text that pages and panels show


REPORT = {"type": "training.report", "id": "a", "step": 1, "training_reward": 0.5}
REPORT |= {"informative_share": 0.5, "local_used": 1, "external_used": 1}
HELLO = {"type": "hello", "id": "a", "protocol": PROTOCOL_VERSION, "client": "0.2.0"}
HELLO |= {"model": "tiny", "tokenizer": "chars", "arm": "swarm"}


@pytest.mark.parametrize(
    "reasons",
    [{"": 1}, {"too long": 1}, {"\u202e": 1}, {"r" * 65: 1}, {f"r{n}": 1 for n in range(17)}],
    ids=["empty", "space", "bidi-mark", "too-long", "too-many"],
)
def test_drop_reasons_that_are_not_few_short_codes_are_refused(reasons: dict[str, int]) -> None:
    refusal = refusal_of(json.dumps(REPORT | {"external_dropped": reasons}))
    assert refusal is not None
    assert refusal.code == ErrorCode.PROTOCOL_INVALID


@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\u0085"])
def test_name_with_a_bidi_control_or_line_break_is_refused(mark: str) -> None:
    refusal = refusal_of(json.dumps(HELLO | {"model": f"tiny{mark}"}))
    assert refusal is not None
    assert refusal.code == ErrorCode.PROTOCOL_INVALID


def test_name_with_stacked_combining_marks_is_refused() -> None:
    refusal = refusal_of(json.dumps(HELLO | {"model": "tiny" + "\u0301" * 4}))
    assert refusal is not None
    assert refusal.code == ErrorCode.PROTOCOL_INVALID


@pytest.mark.parametrize("name", ["مدل\u200cها", "小模型 🐦", "mo\u0302\u0301 hi\u0300nh", "דֶּגֶם"])
def test_name_in_any_script_is_accepted(name: str) -> None:
    assert decode_from_node(json.dumps(HELLO | {"model": name}))
