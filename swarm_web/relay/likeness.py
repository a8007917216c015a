"""Whether a rollout is a copy of another one, whole or with a few words changed; pure.

**What honest rollouts have in common.** A model that has learned a question answers
`<answer>4</answer>` eight times, and so do all others that have learned it. A question may come
again too: a node with `resampling = history` asks its unsolved ones once more, within minutes. So
equal answers prove nothing where the policy has few answers to choose from. How many it has shows
in the rollout itself, because its completions are independent samples: where they are all unlike
each other, the next sample would be unlike them too, and one that is like them was copied.

**The marks.** Each completion gets four minhashes, the least values of four hash functions over
its shingles of 8 bytes. Two texts share a minhash with the probability of their Jaccard similarity
(Broder 1997, "On the resemblance and containment of documents"). A value that two completions of
one rollout share is dropped: it belongs to a template, or to an answer that the model often gives.
The others are the rollout's marks. Only a rollout with enough marks is compared, and only with
rollouts of the same question:

| its completions | it is compared if | another one is near if |
|---|---|---|
| of LONG_BYTES on average, or more | 3/4 of the values are marks | they share 1/2 of the marks |
| shorter, and at least 8 | all values are marks | they share 7/8 of the marks |

The second line suits policies that have few answers: of one with n equally likely answers, two
honest samples of 8 are taken for copies with a probability of at most 2 in 10,000 (n from 10 to
12; simulated). The first line assumes that no policy has so few texts of that length, and no two
of them alike.

**What passes.** A copy in which a sixth of the words or more is new; a copy under another question,
where its answers are wrong; equal short answers, which cannot be told from honest ones. They are
bounded like all that a node sends.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONG_BYTES = 200
_FEWEST_SHORT = 8
_SHINGLE = 8
# Odd numbers without a pattern: binary digits of the golden ratio, and the constants of SplitMix64.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SLOTS = np.array(
    [0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F],
    dtype=np.uint64,
)
_HALF = np.uint64(32)


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
    if len(marks) < (3 / 4 if is_long else 1) * len(texts) * len(_SLOTS):
        return Likeness(question)
    content = hashlib.blake2b(question, digest_size=16)
    for text in texts:
        content.update(b"%d:" % len(text))
        content.update(text)
    packed = np.array(marks, np.uint32).tobytes()
    return Likeness(question, content.digest(), packed, is_long)


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
    # Each byte with the seven after it, read as one number; in numpy, because Python's loops would
    # take a millisecond.
    shingles = np.ndarray(len(data) - _SHINGLE + 1, "<u8", data, strides=(1,))
    mixed = shingles * _MIX
    mixed ^= mixed >> _HALF
    least = [np.minimum.reduceat(mixed * slot, edges)[::2] >> _HALF for slot in _SLOTS]
    return [int(value) for value in np.concatenate(least).tolist()]
