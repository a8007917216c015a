"""Scores published rollouts with the site's own verifier."""

from collections.abc import Sequence

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Rollout, TaskSpec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.generation_errors import GenerationError
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verdicts import Verdict
from swarm_web.relay.conduct import Checked


def score_completions(
    spec: TaskSpec, texts: Sequence[str], *, rules: AnswerRules, verifier: AnyVerifier
) -> tuple[str, list[Verdict]]:
    """Return the regenerated question and a verdict for each text.

    Raises RefusedError TASK_FOREIGN if the question's class (`question_part`) is not the training
    part of the keyspace. Also raises the errors of `verifier.question` and `verifier.score`.
    """
    question = verifier.question(spec)
    # A training index may still give a question of another class: nodes drop it too.
    if question_part(question) is not Part.TRAINING:
        raise RefusedError(ErrorCode.TASK_FOREIGN, "the question is not for training")
    return question, verifier.score(spec, texts, rules=rules)


def check_rollout(rollout: Rollout, *, rules: AnswerRules, verifier: AnyVerifier) -> Checked | None:
    """Return what the site's verifier finds about a rollout; None if no verifier child can be used.

    The result's `declared` is False; the caller sets it. A rollout is `worthless` if receivers
    would drop it, that is, in each of these cases:

    - Its question cannot be generated.
    - Its question's class (`question_part`) is not the training part of the keyspace.
    - The verifier hangs or fails on one of its completions.
    """
    texts = [completion.text for completion in rollout.completions]
    worthless = Checked(rollout.task.dataset, solved=0, total=len(texts), worthless=True)
    try:
        _, verdicts = score_completions(rollout.task, texts, rules=rules, verifier=verifier)
    except GenerationError:
        return worthless
    except RefusedError as refusal:
        return None if refusal.code == ErrorCode.VERIFIER_FAILED else worthless
    if any(verdict.failed for verdict in verdicts):
        return worthless
    solved = sum(verdict.solved for verdict in verdicts)
    return Checked(rollout.task.dataset, solved=solved, total=len(texts))
