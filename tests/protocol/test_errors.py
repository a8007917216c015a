"""RefusedError resolves known error codes and preserves unknown ones."""

from swarm_protocol.errors import FIXES, ErrorCode, RefusedError


def test_known_code_is_resolved_with_its_fix() -> None:
    refusal = RefusedError("verifier.failed", "no")
    assert refusal.code is ErrorCode.VERIFIER_FAILED
    assert refusal.fix == FIXES[ErrorCode.VERIFIER_FAILED]


def test_unknown_code_and_its_fix_are_preserved() -> None:
    refusal = RefusedError("future.trouble", "no", fix="Wait.")
    assert (refusal.code, refusal.fix, refusal.fatal) == ("future.trouble", "Wait.", False)
