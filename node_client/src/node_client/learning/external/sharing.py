"""Conversion of own rollouts into the protocol's format."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from node_client.learning.rollouts import LocalRollout
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import TrainConfig
from swarm_protocol.logprobs import encode_logprobs
from swarm_protocol.messages import (
    MAX_COMPLETION_CHARS,
    MAX_LOGPROBS_CHARS,
    MAX_ROLLOUT_BYTES,
    Completion,
    Rollout,
    SeasonInfo,
)


def shareable_rollouts(
    rollouts: Sequence[LocalRollout],
    *,
    policy: Policy,
    season: SeasonInfo,
    node: str,
    step: int,
    with_logprobs: bool = True,
) -> list[Rollout]:
    """Return the rollouts in the protocol's format: task specs, texts and log-probs, no rewards.

    Log-probs are by token. If the rollout would be too large with them, there is one sum for each
    completion instead, and if it still would be, there are none. Without `with_logprobs`, there
    are none either. A rollout is left out if it has:

    - more or longer completions than the season allows, because other nodes would drop it;
    - a completion on which the verifier hung or failed, for the same reason;
    - a text that the protocol refuses;
    - a text that differs from the sampled bytes;
    - more than MAX_ROLLOUT_BYTES even without log-probs, because the coordinator would refuse it.
    """
    shareable = (
        _as_rollout(rollout, policy=policy, node=node, step=step, with_logprobs=with_logprobs)
        for rollout in rollouts
        if len(rollout.answers) <= season.completions
        and all(len(answer.token_ids) <= season.max_new_tokens for answer in rollout.answers)
        and not any(verdict.failed for verdict in rollout.verdicts)
        and all(_is_sendable(answer, policy=policy) for answer in rollout.answers)
    )
    return [rollout for rollout in shareable if rollout is not None]


def explain_unshared(config: TrainConfig, season: SeasonInfo) -> Iterator[str]:
    """Yield a text for each setting above the season's limits, so that rollouts are not shared.

    These settings are `num_generations` and `max_completion_length`.
    """
    if (config.num_generations or 0) > season.completions:
        yield (
            f"No rollout is shared: num_generations is {config.num_generations}, and others in the"
            f" season {season.name} train on at most {season.completions} completions of a"
            " question. Leave num_generations out to take part."
        )
    if (config.max_completion_length or 0) > season.max_new_tokens:
        yield (
            "Rollouts with a long completion are not shared: max_completion_length is"
            f" {config.max_completion_length}, and others in the season {season.name} train on at"
            f" most {season.max_new_tokens} tokens. Leave max_completion_length out to share all."
        )


def _as_rollout(
    rollout: LocalRollout, *, policy: Policy, node: str, step: int, with_logprobs: bool
) -> Rollout | None:
    """Return a rollout in the protocol's format, or None if it has too many bytes in any form.

    Each completion has its log-probs by token, or only their sum, or none: the first of these
    forms that is small enough. Without `with_logprobs`, there are no log-probs.
    """
    bare = Rollout(
        id=_rollout_id(rollout, node=node, step=step),
        task=rollout.task.spec,
        completions=[
            Completion(text=answer.text, finish_reason=answer.finish_reason)
            for answer in rollout.answers
        ],
        model=policy.name,
        step=step,
        tokenizer=policy.tokenizer_fingerprint,
    )
    forms = [*_logprob_forms(rollout, bare), bare] if with_logprobs else [bare]
    return next((form for form in forms if _size(form) <= MAX_ROLLOUT_BYTES), None)


def _logprob_forms(rollout: LocalRollout, bare: Rollout) -> Iterator[Rollout]:
    """Yield `bare` with log-probs by token, unless one list is too long, and with their sums."""
    packed = [encode_logprobs(answer.logprobs) for answer in rollout.answers]
    if max(map(len, packed)) <= MAX_LOGPROBS_CHARS:
        yield _with_logprobs(bare, "logprobs", packed)
    # At most 0: rounding may raise a token's log-prob above it.
    sums = [min(0.0, sum(answer.logprobs)) for answer in rollout.answers]
    yield _with_logprobs(bare, "logprob", sums)


def _size(rollout: Rollout) -> int:
    """Return a rollout's size in bytes, as the coordinator computes it."""
    return len(msgspec.json.encode(rollout))


def _with_logprobs(
    rollout: Rollout, field: Literal["logprobs", "logprob"], values: Sequence[str | float]
) -> Rollout:
    completions = [
        msgspec.structs.replace(completion, **{field: value})
        for completion, value in zip(rollout.completions, values, strict=True)
    ]
    return msgspec.structs.replace(rollout, completions=completions)


def _rollout_id(rollout: LocalRollout, *, node: str, step: int) -> str:
    """Return a rollout's id: a hash, so that a resumed run gives a repeated rollout the same id.

    The answers are hashed too, because a run that starts from the beginning asks the same questions
    at the same steps as the earlier run, but may get other answers.
    """
    texts = [answer.text for answer in rollout.answers]
    content = msgspec.json.encode((node, step, rollout.task.spec, texts), order="deterministic")
    return hashlib.sha256(content).hexdigest()[:32]


def _is_sendable(answer: Generated, *, policy: Policy) -> bool:
    """Return whether the protocol accepts the text and decoding has lost no sampled bytes.

    The protocol refuses NUL, lone surrogates and texts that are too long. Sampled tokens that are
    not valid UTF-8 are decoded to U+FFFD, which other nodes would learn to write. So a text with
    U+FFFD is sent only if it encodes to the sampled tokens. Special tokens are left out of a text,
    which is sent without them.
    """
    text = answer.text
    if "\x00" in text or len(text) > MAX_COMPLETION_CHARS:
        return False
    if any("\ud800" <= character <= "\udfff" for character in text):
        return False
    return "\ufffd" not in text or (
        policy.completion_ids(text, answer.finish_reason) == answer.token_ids
    )
