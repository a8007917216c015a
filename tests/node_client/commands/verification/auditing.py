"""Checks of a published round, and their outcomes for an honest round."""

from typing import Any

from node_client.commands.verification.audit import audit_round
from node_client.commands.verification.checks import CheckOutcome, RoundCheck
from node_client.storage.commitments import RecordedCommitment
from swarm_tasks.verifier import Verifier
from tests.node_client.commands.verification.rounds import NUMBER, Published


def audit(
    published: Published,
    verifier: Verifier,
    *,
    number: int = NUMBER,
    recorded: RecordedCommitment | None = None,
) -> dict[str, RoundCheck]:
    checks = audit_round(
        published.round,
        number=number,
        recorded=recorded,
        asked=published.earlier,
        answers=published.lines,
        verifier=verifier,
    )
    return {check.name: check for check in checks}


def outcomes(published: Published, verifier: Verifier) -> dict[str, CheckOutcome]:
    """Return the outcomes of the checks that had something to compare."""
    checks = audit(published, verifier)
    assert checks["noted before"].outcome is CheckOutcome.SKIPPED
    return {name: check.outcome for name, check in checks.items() if name != "noted before"}


HOLDS = dict.fromkeys(
    ["commitment", "asked before", "questions", "answers", "scores"], CheckOutcome.HOLDS
)


ABSENT: dict[str, Any] = {"status": "absent", "score": None, "n": 0, "correct": 0, "cells": {}}


def differing(*names: str) -> dict[str, CheckOutcome]:
    return {**HOLDS, **dict.fromkeys(names, CheckOutcome.DIFFERS)}
