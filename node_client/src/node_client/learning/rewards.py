"""The reward models, which compute the rewards of completions.

A reward model is rho in SAPO (arXiv 2509.08721, section 3). Each node computes the rewards of its
whole training set itself, also of external rollouts, and never uses those that other nodes
computed. The setting `reward` names a model, or a custom class as `package.module:Class`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.plugins import make_plugin
from node_client.model.memory.budget import is_out_of_memory, release_memory
from node_client.model.padding import Rows
from node_client.model.policy import Policy
from swarm_tasks.verdicts import Verdict

# The reward of `format` for the format alone.
FORMAT_REWARD = 0.1
_FORMAT = re.compile(r"[^<]*<answer>[^<]+</answer>\s*")
# The question and the two answers of a generative verifier.
RIGHT_PROMPT = "\nIs this answer right? Say yes or no: "
YES, NO = "yes", "no"


class Reward(ABC):
    """Computes the rewards of completions."""

    def begin(self, policy: Policy, *, system_prompt: str) -> None:  # noqa: B027
        """Receive the trained policy and its system prompt, before the first call of `rewards`."""

    @abstractmethod
    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return a reward in [0, 1] for each completion text; `verdicts` are the verifier's."""


class BinaryReward(Reward):
    """Reward of 1 for a right completion, else 0."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        return [float(verdict.solved) for verdict in verdicts]


class PartialReward(Reward):
    """The verifier's score, which may be partial credit."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        return [verdict.score for verdict in verdicts]


class FormatReward(Reward):
    """Reward of 1 for a right completion, 0.1 for a wrong one in the right format, else 0.

    A completion has the right format if it ends with `<answer>`, a text that is not empty,
    `</answer>` and optional white space, and contains no other `<`.
    """

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        return [
            1.0 if verdict.solved else FORMAT_REWARD * bool(_FORMAT.fullmatch(text))
            for text, verdict in zip(texts, verdicts, strict=True)
        ]


class GenerativeReward(Reward):
    """Rewards a completion by the policy's own confidence that its answer is right.

    It uses no verdicts, and is meant for research.
    """

    def begin(self, policy: Policy, *, system_prompt: str) -> None:
        self._policy, self._system_prompt = policy, system_prompt

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return the policy's confidence in each text (`confidences`).

        The confidence is 0 for a text that is empty or that the tokenizer cannot represent.
        """
        policy = self._policy
        prompt = policy.prompt_ids(question, system_prompt=self._system_prompt)
        encoded = [policy.completion_ids(text, "length") for text in texts]
        found = confidences(policy, prompt, [ids or [] for ids in encoded])
        return [
            0.0 if ids is None else probability
            for ids, probability in zip(encoded, found, strict=True)
        ]


REWARDS: dict[str, type[Reward]] = {
    "binary": BinaryReward,
    "partial": PartialReward,
    "format": FormatReward,
    "generative": GenerativeReward,
}


def make_reward(name: str) -> Reward:
    """Return the reward model that the setting `reward` names.

    Raises SettingsError as `make_plugin` does.
    """
    return make_plugin(name, known=REWARDS, base=Reward, setting="reward")  # type: ignore[type-abstract]


def confidences(policy: Policy, prompt: Sequence[int], completions: Rows) -> list[float]:
    """Return for each completion of a prompt the policy's confidence, in [0, 1], that it is right.

    The policy is asked whether the completion is right. The result is p(yes) / (p(yes) + p(no)).
    This is a generative verifier (arXiv 2408.15240), which SAPO (arXiv 2509.08721, section 6) names
    as future work. All results are 0.5 if the tokenizer cannot represent RIGHT_PROMPT, YES or NO.
    When memory runs out, the completions are halved, down to one at a time. Raises
    MemoryExhaustedError if not even one completion fits.
    """
    suffix_ids, yes, no = (
        policy.completion_ids(text, "length") for text in (RIGHT_PROMPT, YES, NO)
    )
    if suffix_ids is None or yes is None or no is None:
        return [0.5] * len(completions)
    prompts = [[*prompt, *completion, *suffix_ids] for completion in completions]
    try:
        return _yes_shares(policy, prompts, yes=yes, no=no)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(completions) == 1:
            raise MemoryExhaustedError(
                "Memory runs out when the policy is asked whether a single completion is right.",
                fix="Ask for shorter completions (max_completion_length), or set reward and "
                "external_sampling to methods that do not ask the policy.",
            ) from error
    release_memory(policy.device)
    half = len(completions) // 2
    parts = (completions[:half], completions[half:])
    return [each for part in parts for each in confidences(policy, prompt, part)]


@torch.no_grad()
def _yes_shares(policy: Policy, prompts: Rows, *, yes: list[int], no: list[int]) -> list[float]:
    """Return p(yes) / (p(yes) + p(no)) for each prompt; `yes` and `no` are token ids."""
    doubled = [prompt for prompt in prompts for _ in range(2)]
    logprobs, _ = policy.logprobs(doubled, [yes, no] * len(prompts))
    totals = logprobs.sum(dim=1).view(-1, 2)
    probabilities: list[float] = totals.softmax(dim=1)[:, 0].tolist()
    return probabilities
