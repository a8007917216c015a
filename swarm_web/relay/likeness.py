"""Whether a rollout is a copy of another one, whole or with a few words changed; pure.

**What honest rollouts have in common.** A model that has learned a question answers
`<answer>4</answer>` eight times, and so do all others that have learned it. A question may come
again too: a node with `resampling = history` asks its unsolved ones once more, within minutes. So
equal answers prove nothing where the policy has few answers to choose from. How many it has shows
in the rollout itself, because its completions are independent samples: where they are all unlike
each other, the next sample would be unlike them too, and one that is like them was copied.

**The marks.** Each completion gets four minhashes, the least values of four hash functions over
its shingles of 16 bytes, about three words. Two texts share a minhash with the probability of their
Jaccard similarity (Broder 1997, "On the resemblance and containment of documents"). A value that
two completions of one rollout share is dropped: it belongs to a template, or to an answer that the
model often gives. The others are the rollout's marks. Only a rollout with enough marks is compared,
and only with rollouts of the same question:

| its completions | it is compared if | another one is near if |
|---|---|---|
| of LONG_BYTES on average, or more | 7/8 of the values are marks | they share 1/2 of the marks |
| shorter, and at least 8 | all values are marks | they share 7/8 of the marks |

The worst policy for the second line has 10 to 12 equally likely answers without a common template:
two samples of 8 are taken for copies with a probability of 2 in 10,000. For the first line it has
about 30 texts of that length and gives each of them word for word: 2 in 100. Policies that
vary parts of a text have none in 600 (`docs/decisions/0040-window.md`).

**What passes.** A copy with an eighth of the words new, or half of the completions; a copy under
another question, where its answers are wrong; equal short answers, which cannot be told from honest
ones. They are bounded like all that a node sends.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONG_BYTES = 200
_FEWEST_SHORT = 8
_SHINGLE = 16
# Odd numbers without a pattern: the golden ratio's digits, and halves of SplitMix64's constants.
_MIX, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_SLOTS = np.array([[0xBF58476D], [0x1CE4E5B9], [0x94D049BB], [0x133111EB]], np.uint32)


@dataclass(frozen=True, slots=True)
class Likeness:
    """What is compared of a rollout.

    `question` is a digest of its task, 8 bytes. `content` is one of task and completions, 16 bytes,
    and `marks` are 4 bytes each; both are empty if the rollout is not compared.
    """

    question: bytes
    content: bytes = b""
    marks: bytes = b""
    is_long: bool = False

    def is_near(self, other: "Likeness") -> bool:
        """Tell whether both are compared and share enough marks."""
        if self.question != other.question or not self.marks or not other.marks:
            return False
        mine = set(np.frombuffer(self.marks, np.uint32).tolist())
        others = set(np.frombuffer(other.marks, np.uint32).tolist())
        needed = 1 / 2 if self.is_long and other.is_long else 7 / 8
        return len(mine & others) >= needed * max(len(mine), len(others))


def liken(*, task: bytes, completions: Sequence[str]) -> Likeness:
    """Return what is compared of a rollout; `task` is its task spec as canonical JSON."""
    question = hashlib.blake2b(task, digest_size=8).digest()
    texts = [text.encode("utf-8", "surrogatepass") for text in completions]
    is_long = sum(map(len, texts)) >= LONG_BYTES * len(texts)
    if not is_long and (len(texts) < _FEWEST_SHORT or len(set(texts)) < len(texts)):
        return Likeness(question)
    values = _minhashes([text for text in texts if text])
    marks = [value for value, times in Counter(values).items() if times == 1]
    if len(marks) < (7 / 8 if is_long else 1) * len(texts) * len(_SLOTS):
        return Likeness(question)
    # With the lengths, so that no two lists of texts are joined to the same bytes.
    whole = b"".join([question, repr([*map(len, texts)]).encode(), *texts])
    content = hashlib.blake2b(whole, digest_size=16).digest()
    return Likeness(question, content, np.array(marks, np.uint32).tobytes(), is_long)


def _minhashes(texts: Sequence[bytes]) -> list[int]:
    """Return the minhashes of texts that are not empty, one for each slot and text."""
    pad = bytes(_SHINGLE)
    data = pad.join([*texts, b""])
    # Where each text begins, and where the shingles end that begin in it.
    edges = []
    start = 0
    for text in texts:
        edges += [start, start + len(text)]
        start += len(text) + _SHINGLE
    # Each byte with the seven after it, read as one number; two of these are a shingle. In numpy,
    # because Python would take a millisecond.
    eights: NDArray[np.uint64] = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))
    mixed = ((eights[:-8] * _MIX + eights[8:] * _MIX_2) >> _HALF).astype(np.uint32)
    least = np.minimum.reduceat(mixed * _SLOTS, edges, axis=1)[:, ::2]
    values: list[int] = least.ravel().tolist()
    return values
