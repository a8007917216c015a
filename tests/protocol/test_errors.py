"""A refusal keeps what a newer server said, and recognises what both sides know."""

from swarm_protocol.errors import FIXES, ErrorCode, RefusedError


def test_a_known_code_from_the_wire_is_recognised() -> None:
    refusal = RefusedError("verifier.failed", "no")
    assert refusal.code is ErrorCode.VERIFIER_FAILED
    assert refusal.fix == FIXES[ErrorCode.VERIFIER_FAILED]


def test_an_unknown_code_keeps_its_own_remedy() -> None:
    refusal = RefusedError("future.trouble", "no", fix="Wait.")
    assert (refusal.code, refusal.fix, refusal.fatal) == ("future.trouble", "Wait.", False)
