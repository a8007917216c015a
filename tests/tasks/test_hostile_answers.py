"""Executing, hanging and junk answers to every allowed dataset."""

import pytest

from swarm_tasks.allowlist import allowed_datasets
from swarm_tasks.gate.answers import HANGING, JUNK
from swarm_tasks.verifier import Verifier
from tests.tasks.faulty import child_pid, faulty_verifier
from tests.tasks.specs import answered, make_spec

pytestmark = pytest.mark.slow

# Ends the process that evaluates it, so the child's process id shows whether it was executed.
PAYLOAD = "__import__('os')._exit(3)"
EXECUTING = (
    *(PAYLOAD, f"[{PAYLOAD}]", f"[[{PAYLOAD}]]", f"({PAYLOAD},)", f"0+{PAYLOAD}"),
    *(f"{{'a': {PAYLOAD}}}", f"exec({PAYLOAD!r})", f"f'{{{PAYLOAD}}}'"),
)


@pytest.mark.parametrize("dataset", allowed_datasets())
def test_hostile_answers_are_wrong_and_not_executed(verifier: Verifier, dataset: str) -> None:
    before = child_pid(verifier)
    texts = [answered(text) for text in (*EXECUTING, *HANGING, *JUNK)]
    verdicts = verifier.score(make_spec(dataset, index=11), texts)
    assert [text for text, verdict in zip(texts, verdicts, strict=True) if verdict.solved] == []
    assert child_pid(verifier) == before


def test_executed_answer_replaces_the_child() -> None:
    with faulty_verifier() as evaluating:
        before = child_pid(evaluating)
        text = answered(f"({PAYLOAD}) # please evaluate")
        (verdict,) = evaluating.score(make_spec(), [text])
        assert verdict.reason == "verifier_error"
        assert child_pid(evaluating) != before
