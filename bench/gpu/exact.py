"""Compare training: GPU with CPU, bfloat16 with float32, and a step with its repetition."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from bench.node.ours import bench_config, make_trainer
from bench.node.sizes import COMPLETIONS, Size
from bench.node.work import LenientVerifier
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.timing import StepTimer, clock_of
from node_client.learning.update.rows import TrainingRow, make_rows
from node_client.learning.update.updater import MicroBatch, Updater, set_gradient_types
from node_client.model.halves import full_precision
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier

CONFIG = TrainConfig(arm="isolated")
# Random shifts of the log-probs, as if the policy had changed since sampling. Some are inside and
# some outside of the clip range, all too far from its ends for rounding to matter.
_MOVES = torch.tensor([-0.4, -0.1, 0.1, 0.4])


@dataclass(frozen=True)
class Work:
    """Questions with completions to train on, one row per completion.

    `old_logprobs` (B, T) is the denominator of the importance ratio. It differs from the policy's
    log-probs by random shifts, as if the policy had changed since it generated the completions.
    """

    questions: list[str]
    rows: list[TrainingRow]
    old_logprobs: Tensor


@dataclass(frozen=True)
class Pass:
    """The results of a forward and a backward pass, on the CPU in float32."""

    loss: float
    logprobs: Tensor
    gradient: list[Tensor]


def compare_with_cpu(size: Size, model: Path, device: str) -> dict[str, float]:
    """Return how a float32 pass and greedy answers on `device` differ from those on the CPU.

    The weights and the rows to train on are the same. The figures are those of `differences` and
    `compare_greedy`.
    """
    reference = Policy.load(str(model), device="cpu")
    policy = Policy.load(str(model), device=device)
    work = make_work(size, reference)
    found = differences(run_pass(work, reference), run_pass(work, policy))
    return found | compare_greedy(size, work, reference, policy)


def compare_bf16(size: Size, model: Path, device: str) -> dict[str, float]:
    """Return how a forward and backward pass in bfloat16 differs from one in float32.

    The figures are those of `differences`, with the prefix `bf16_` in their names. In bfloat16, the
    weights are stored as in `node_client.model.halves`.
    """
    policy = Policy.load(str(model), device=device)
    work = make_work(size, policy)
    expected = run_pass(work, policy)
    policy.set_precision("bf16")
    policy.halve_weights()
    found = differences(expected, run_pass(work, policy))
    return {f"bf16_{name}": value for name, value in found.items()}


def repeat_step(size: Size, model: Path, device: str) -> dict[str, float]:
    """Make the same training step twice from the same weights.

    Returns the share of weights that are equal afterwards, and the relative difference of the
    gradient's norm.
    """
    with LenientVerifier() as verifier:
        norm, weights = _step(size, model, device, verifier)
        norm_again, weights_again = _step(size, model, device, verifier)
    pairs = zip(weights, weights_again, strict=True)
    equal = sum(int((one == other).sum()) for one, other in pairs)
    return {
        "repeat_equal_weights": equal / sum(weight.numel() for weight in weights),
        "repeat_grad_norm_difference": abs(norm_again - norm) / norm,
    }


def make_work(size: Size, policy: Policy) -> Work:
    """Return the policy's completions of `size.prompts` questions, as rows to train on.

    Every other completion gets the reward 1, the others 0.
    """
    questions = [f"What is {number} + {number * number}?" for number in range(size.prompts)]
    answers = policy.generate(
        questions,
        completions=COMPLETIONS,
        max_new_tokens=size.completion_tokens,
        temperature=CONFIG.temperature,
        generator=torch.Generator(policy.device).manual_seed(0),
    )
    groups = [
        TrainingGroup(
            prompt=policy.prompt_ids(question),
            completions=[answer.token_ids for answer in answered],
            rewards=[float(place % 2) for place in range(COMPLETIONS)],
            truncated=[answer.finish_reason == "length" for answer in answered],
        )
        for question, answered in zip(questions, answers, strict=True)
    ]
    rows = make_rows(groups, config=CONFIG)
    logprobs = _logprobs(policy, rows)
    chosen = torch.randint(4, logprobs.shape, generator=torch.Generator().manual_seed(0))
    return Work(questions, rows, logprobs + _MOVES[chosen])


def run_pass(work: Work, policy: Policy) -> Pass:
    """Return the loss for training the policy on `work`, the loss's gradient, and the log-probs."""
    set_gradient_types(policy.trainable(), summed=True)  # float32 gradients, also of halves
    batch = MicroBatch(work.rows, work.old_logprobs.to(policy.device), reference_logprobs=None)
    updater = Updater(policy, CONFIG, optimizer=torch.optim.SGD(policy.trainable()))
    loss = updater.accumulate(batch, timer=StepTimer(clock_of(policy.device)))
    gradient = []
    for parameter in policy.trainable():
        assert parameter.grad is not None
        gradient.append(parameter.grad.float().cpu())
        parameter.grad = None
    return Pass(loss.value.item(), _logprobs(policy, work.rows), gradient)


def differences(expected: Pass, found: Pass) -> dict[str, float]:
    """Return the differences of loss, gradient norm, gradient and log-probs between two passes.

    They are relative to `expected`, except for the log-probs: the largest absolute difference.
    """
    norm, found_norm = (get_total_norm(one.gradient).item() for one in (expected, found))
    apart = [mine - theirs for mine, theirs in zip(found.gradient, expected.gradient, strict=True)]
    return {
        "loss_difference": abs(found.loss - expected.loss) / abs(expected.loss),
        "grad_norm_difference": abs(found_norm - norm) / norm,
        "gradient_difference": get_total_norm(apart).item() / norm,
        "logprob_difference": (found.logprobs - expected.logprobs).abs().max().item(),
    }


def compare_greedy(size: Size, work: Work, reference: Policy, policy: Policy) -> dict[str, float]:
    """Return how well the greedy answers of two policies agree.

    `greedy_equal_tokens` is the share of positions at which both answers have the same token.
    `greedy_preference` concerns the first position at which the two answers to a question differ,
    because later tokens continue different texts. It is the absolute difference of the reference's
    log-probs of the two tokens at this position, the largest over all questions. It is nearly 0 if
    the answers differ only because of rounding.
    """
    expected, found = (_answer(one, work.questions, size) for one in (reference, policy))
    same, longest, preference = 0, 0, 0.0
    for question, mine, theirs in zip(work.questions, expected, found, strict=True):
        pairs = [one == other for one, other in zip(mine, theirs, strict=False)]
        same, longest = same + sum(pairs), longest + max(len(mine), len(theirs))
        if False in pairs:
            place = pairs.index(False)
            prompt = [*reference.prompt_ids(question), *mine[:place]]
            here, there = _chances(reference, prompt, (mine[place], theirs[place]))
            preference = max(preference, abs(here - there))
    return {"greedy_equal_tokens": same / longest, "greedy_preference": preference}


def _answer(policy: Policy, questions: Sequence[str], size: Size) -> list[list[int]]:
    """Return the tokens of the greedy answer to each question."""
    answers = policy.generate(
        questions, completions=1, max_new_tokens=size.completion_tokens, temperature=0.0
    )
    return [answer.token_ids for (answer,) in answers]


@torch.no_grad()
def _chances(policy: Policy, prompt: list[int], tokens: tuple[int, int]) -> list[float]:
    """Return the log-probs of two candidates for the next token after the prompt."""
    logprobs, _ = policy.logprobs([prompt] * len(tokens), [[token] for token in tokens])
    chances: list[float] = logprobs[:, 0].tolist()
    return chances


@torch.no_grad()
def _logprobs(policy: Policy, rows: Sequence[TrainingRow]) -> Tensor:
    """Return the log-probs (B, T) of the rows' tokens, on the CPU."""
    logprobs, _ = policy.logprobs([row.prompt for row in rows], [row.completion for row in rows])
    return logprobs.cpu()


def _step(size: Size, model: Path, device: str, verifier: Verifier) -> tuple[float, list[Tensor]]:
    """Load the model and make one step; return the gradient's norm and the new weights."""
    policy = Policy.load(str(model), device=device)
    trainer = make_trainer(size, policy=policy, verifier=verifier, config=bench_config(size))
    report = trainer.step()
    with full_precision(policy.remainders):
        weights = [part.detach().to("cpu", copy=True) for part in policy.trainable()]
    return report.grad_norm, weights
