"""What a published rollout is worth by our own verifier."""

from collections.abc import Sequence

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verifier import Verdict


def score_completions(
    spec: TaskSpec, texts: Sequence[str], *, rules: AnswerRules, verifier: AnyVerifier
) -> tuple[str, list[Verdict]]:
    """Return the question, made again, and a verdict for each text. Raises RefusedError."""
    question = verifier.question(spec)
    # A training index may still make a question that the judge owns: nodes drop it, and so do we.
    if question_part(question) is not Part.TRAINING:
        raise RefusedError(ErrorCode.TASK_FOREIGN, "the question belongs to the judge")
    return question, verifier.score(spec, texts, rules=rules)
