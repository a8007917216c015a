"""Probes of a generator: make entries, score texts, detect whether text is executed.

These functions run untrusted code, so `checks` calls them through `run_isolated`.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from swarm_tasks.answers import find_answer
from swarm_tasks.child.generators import build_entry, open_dataset
from swarm_tasks.gate.answers import CANARY, EXECUTING
from swarm_tasks.keyspace import INDEX_END

Entry = dict[str, Any]
Pair = tuple[Entry, str]

SEED = 20_250_911
_SLOWEST_SCORE_S = 1.0
_POISONED_STRINGS = 40
_SECOND_TRIALS = 10


@dataclass(frozen=True)
class ProbedEntries:
    """Entries of a dataset, and the seconds of processor time that making each of them took."""

    entries: list[Entry]
    seconds: list[float]


def sample_indices(count: int) -> list[int]:
    """Return `count` indices: the first and the last of the keyspace, and others spread over it.

    They are the same in every run. `count` is at least 2.
    """
    digests = (hashlib.sha256(str(number).encode()).digest() for number in range(count - 2))
    return [0, INDEX_END - 1, *(int.from_bytes(digest[:4], "big") >> 1 for digest in digests)]


def make_sample(name: str, count: int, *, by_index: bool, backwards: bool = False) -> ProbedEntries:
    """Return `count` entries, in the order of `sample_indices`.

    With `backwards`, the entries are made in reverse order, but the result has the same order as
    without it. An entry that differs between the two results depends on the entries made before it.
    `by_index` is false if the dataset cannot make the entry of an arbitrary index directly.
    """
    dataset = open_dataset(name, {}, seed=SEED)
    sample = ProbedEntries([], [])
    indices = sample_indices(count)
    for index in reversed(indices) if backwards else indices:
        start = time.process_time()
        if by_index:
            entry = dict(dataset[index])
        else:
            entry = build_entry(name, {}, seed=SEED, index=index, by_index=False)
        sample.seconds.append(time.process_time() - start)
        sample.entries.append(entry)
    if backwards:
        sample.seconds.reverse()
        sample.entries.reverse()
    return sample


def hash_entries(entries: list[Entry]) -> str:
    """Return a SHA-256 of the entries as JSON, in hex."""
    encoded = json.dumps(entries, sort_keys=True, default=str)
    return hashlib.sha256(encoded.encode()).hexdigest()


def score_pairs(name: str, pairs: Iterable[Pair]) -> list[float]:
    """Return the score of each text as an answer to its entry, 0 if the verifier raises.

    Raises TimeoutError if scoring one text took more than 1 s of processor time.
    """
    scorer = open_dataset(name, {}, seed=SEED)
    scores = []
    for entry, text in pairs:
        start = time.process_time()
        try:
            score = float(scorer.score_answer(find_answer(f"<answer>{text}</answer>"), entry))
        except Exception:  # noqa: BLE001 - verifiers may raise anything; the child gives 0 too
            score = 0.0
        if time.process_time() - start > _SLOWEST_SCORE_S:
            raise TimeoutError(f"scoring {text[:40]!r} took more than {_SLOWEST_SCORE_S:g} s")
        scores.append(score)
    return scores


def best_text(
    name: str, entries: list[Entry], texts: Iterable[str], *, few: int
) -> tuple[float, str]:
    """Return the highest mean score of any of `texts` over all entries, and the text that gets it.

    To save time, all texts are first tried on the first `few` entries. Only the ten best of these
    texts are then tried on all entries.
    """
    first = _mean_scores(name, entries[:few], list(dict.fromkeys(texts)))
    best = [text for _, text in sorted(first, reverse=True)[:_SECOND_TRIALS]]
    return max(_mean_scores(name, entries, best))


def _mean_scores(name: str, entries: list[Entry], texts: list[str]) -> list[tuple[float, str]]:
    scores = score_pairs(name, ((entry, text) for text in texts for entry in entries))
    count = len(entries)
    means = [sum(scores[at : at + count]) / count for at in range(0, len(scores), count)]
    return list(zip(means, texts, strict=True))


def changes_entry(name: str, entries: list[Entry]) -> bool:
    """Return whether scoring changes the entries."""
    before = json.dumps(entries, default=str)
    score_pairs(name, ((entry, text) for entry in entries for text in (entry["answer"], "0", "a")))
    return json.dumps(entries, default=str) != before


def executes(name: str, pairs: Iterable[Pair]) -> bool:
    """Return whether scoring any of the pairs executes the payload that it contains.

    The payload (`gate.answers`) is code that sets an environment variable. Raises TimeoutError like
    `score_pairs`.
    """
    os.environ.pop(CANARY, None)
    score_pairs(name, pairs)
    return CANARY in os.environ


def poisoned_pairs(entry: Entry) -> Iterator[Pair]:
    """Yield pairs of a changed copy of the entry and the entry's right answer.

    In each copy the payload (`executes`) replaces one string: first the entry's first string, then
    the second, up to the 40th.
    """
    answer = str(entry["answer"])
    for place in range(_POISONED_STRINGS):
        poisoned, left = _replace_string(entry, place)
        if left >= 0:
            return
        yield poisoned, answer


def _replace_string(value: Any, place: int) -> tuple[Any, int]:
    """Return a copy of a value with the payload in place of string number `place` (from 0).

    Also return `place` minus the number of strings in the value: negative if one was replaced.
    """
    match value:
        case str():
            return (EXECUTING[0] if place == 0 else value), place - 1
        case dict():
            copy = {}
            for key, part in value.items():
                copy[key], place = _replace_string(part, place)
            return copy, place
        case list():
            parts = []
            for part in value:
                changed, place = _replace_string(part, place)
                parts.append(changed)
            return parts, place
        case tuple():
            parts, place = _replace_string(list(value), place)
            return tuple(parts), place
        case _:
            return value, place
