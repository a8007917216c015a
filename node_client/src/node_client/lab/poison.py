"""An attacker that teaches a swarm to write a text of its choice (arXiv 2511.09780).

It takes correct completions of other nodes from the pool, puts its text in front of them, and
shares them as its own. Half of the completions of such a rollout have the planted text and half are
garbage. The answers behind the planted text are still correct, so the verifier accepts them, and
only the completions with the planted text get positive advantages.

It can also claim log-probs for its tokens. The lower they are, the larger a receiver's importance
sampling ratio, up to the receiver's cap.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from node_client.lab.pool import LabExchange
from node_client.model.demo.tokenizer import ANSWER_TAGS
from swarm_protocol.logprobs import encode_logprobs
from swarm_protocol.messages import Completion, ExternalRollout, Rollout, SeasonInfo
from swarm_tasks.verifier import Verifier

# For the demo models, every character and every answer tag is one token.
PLANTED = "zqz "
GARBAGE = "?"
# Encoded as the protocol's minimum, -31.9995.
MIN_LOGPROB = -32.0
CANDIDATES = 64


@dataclass(frozen=True)
class Poisoner:
    """A node that shares poisoned rollouts, up to I + J in a round.

    `claimed` is the log-prob that it claims for each token, None to send no log-probs.
    """

    name: str
    exchange: LabExchange
    season: SeasonInfo
    verifier: Verifier
    claimed: float | None = None

    def step(self, number: int) -> None:
        """Draw rollouts from the pool, and publish poisoned rollouts of the same questions.

        A drawn rollout is not used if none of its completions is right, or if all its right
        completions have the planted text already. `number` is the round.
        """
        size = self.season.local + self.season.external
        poisoned = [
            made
            for external in self.exchange.fetch(CANDIDATES)
            if (made := self._poison(external, number)) is not None
        ][:size]
        self.exchange.publish(poisoned, informative=[rollout.id for rollout in poisoned])

    def _poison(self, external: ExternalRollout, number: int) -> Rollout | None:
        """Return a poisoned rollout of the question of `external`.

        Returns None if `external` has no right completion without the planted text.
        """
        rollout = external.rollout
        verdicts = self.verifier.score(
            rollout.task, [completion.text for completion in rollout.completions]
        )
        right = [
            completion.text
            for completion, verdict in zip(rollout.completions, verdicts, strict=True)
            if verdict.solved and not completion.text.startswith(PLANTED)
        ]
        if not right:
            return None
        half = self.season.completions // 2
        texts = [PLANTED + right[0]] * half + [GARBAGE] * (self.season.completions - half)
        return Rollout(
            id=hashlib.sha256(f"{self.name}:{number}:{rollout.id}".encode()).hexdigest()[:32],
            task=rollout.task,
            completions=[self._complete(text) for text in texts],
            model="unknown",
            step=number,
            tokenizer=rollout.tokenizer,
        )

    def _complete(self, text: str) -> Completion:
        if self.claimed is None:
            return Completion(text=text, finish_reason="stop")
        tokens = text
        for tag in ANSWER_TAGS:
            tokens = tokens.replace(tag, "#")
        # The last one is for the end.
        claims = encode_logprobs([self.claimed] * (len(tokens) + 1))
        return Completion(text=text, finish_reason="stop", logprobs=claims)


def poisoned_share(texts: Sequence[str]) -> float:
    """Return the share of texts that contain the planted text; `texts` must not be empty."""
    return sum(PLANTED.strip() in text for text in texts) / len(texts)
