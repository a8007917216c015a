"""What a completion is worth to the node that trains on it: its own reward model, rho in SAPO
(arXiv 2509.08721, section 3).

Rewards of others are never used: each node computes those of the whole training set by itself. A
class of one's own is named as `package.module:Class` in the setting `reward`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from node_client.learning.confidence import confidences
from node_client.learning.plugins import make_part
from node_client.model.policy import Policy
from swarm_tasks.verifier import Verdict

# What `format` pays for the form alone.
FORM = 0.1
_FORM = re.compile(r"[^<]*<answer>[^<]+</answer>\s*")


class Reward(ABC):
    """Says what completions are worth."""

    def begin(self, policy: Policy, *, system_prompt: str) -> None:  # noqa: B027
        """Take note of the policy that is trained, and of how it is asked."""

    @abstractmethod
    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return a reward in [0, 1] for each completion text, which the verifier judged so."""


class Binary(Reward):
    """1 for solved, else 0."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return whether each text is right, as a number."""
        return [float(verdict.solved) for verdict in verdicts]


class Partial(Reward):
    """The verifier's partial credit."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return the verifier's scores."""
        return [verdict.score for verdict in verdicts]


class Format(Reward):
    """1 for solved, and a tenth for a wrong answer that ends with one pair of answer tags."""

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return 1, a tenth or 0 for each text."""
        return [
            1.0 if verdict.solved else FORM * bool(_FORM.fullmatch(text))
            for text, verdict in zip(texts, verdicts, strict=True)
        ]


class Generative(Reward):
    """The policy's own confidence that the answer is right (`learning.confidence`).

    It needs no key, and believes what the policy believes: for research.
    """

    def begin(self, policy: Policy, *, system_prompt: str) -> None:
        """Take note of the policy that is asked."""
        self._policy, self._system_prompt = policy, system_prompt

    def rewards(
        self, question: str, texts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[float]:
        """Return the confidences; 0 for texts that the tokenizer cannot write."""
        policy = self._policy
        prompt = policy.prompt_ids(question, system_prompt=self._system_prompt)
        encoded = [policy.completion_ids(text, "length") for text in texts]
        found = confidences(policy, prompt, [ids or [] for ids in encoded])
        return [0.0 if ids is None else chance for ids, chance in zip(encoded, found, strict=True)]


REWARDS: dict[str, type[Reward]] = {
    "binary": Binary,
    "partial": Partial,
    "format": Format,
    "generative": Generative,
}


def make_reward(name: str) -> Reward:
    """Return the reward of this name. Raises SettingsError."""
    return make_part(name, known=REWARDS, base=Reward, setting="reward")  # type: ignore[type-abstract]
