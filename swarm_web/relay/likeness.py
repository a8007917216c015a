"""Whether a rollout is a copy of another one, whole or with a few words changed; no I/O.

**What honest rollouts have in common.** Models that have learned a question often give equal
answers, such as `<answer>4</answer>` eight times. A node may also send several rollouts for one
question: with `resampling = history` it samples unsolved ones again, within minutes. So equal
answers prove nothing if the policy has few possible answers. The rollout itself shows whether it
has few, because its completions are independent samples: if they all differ from each other, the
policy's next sample would differ from them too, so a similar text is a copy.

**The marks.** Each completion gets four minhashes, the least values of four hash functions over its
shingles of 16 bytes, about three words. The probability that two texts share the minhash of a hash
function is their Jaccard similarity (Broder 1997, "On the resemblance and containment of
documents"). Values that occur in several completions of a rollout are dropped: they come from a
template, or from an answer that the model often gives. The remaining values are the rollout's
marks. A rollout with enough marks is remembered. A later rollout of the same party for the same
question is a near-copy if it has enough of the remembered rollout's marks:

| completions of a rollout | it is remembered if | a later one is a near-copy if |
|---|---|---|
| of LONG_BYTES on average, or more | 7/8 of the values are marks | it has 1/2 of the marks |
| shorter, and at least 8 | all values are marks | it has 7/8 of the marks |

A later rollout with shorter completions always needs 7/8 of the marks. It is also never a near-copy
unless it would itself be remembered.

Among policies with short completions, the highest error rate belongs to one with 10 to 15 equally
likely answers without a common template: two samples of 8 count as copies with a probability of
about 3 in 10,000. Among policies with long completions, it belongs to one that repeats 15 to 20
texts word for word: 4 in 100. Of policies that vary the sentences of a text, 1 in 10,800 was
refused (`docs/decisions/0040-window.md`).

**The cost.** A rollout's marks are computed only if its party has sent another one for the same
question, or if any node has sent the same completions; honest nodes rarely do either.

**What is not detected.** A changed copy of another party's rollout; a copy in which an eighth of
the words or half of the completions are new; a copy sent for another question, for which its
answers are wrong; equal short answers, which cannot be distinguished from honest ones. A node's
other limits still apply to such copies, for example its share of the pool.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

LONG_BYTES = 200
_MIN_SHORT = 8
_SHINGLE = 16
# Odd numbers without a pattern: the golden ratio's digits, and halves of SplitMix64's constants.
_MIX, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_SLOTS = np.array([[0xBF58476D], [0x1CE4E5B9], [0x94D049BB], [0x133111EB]], np.uint32)


class Digests(NamedTuple):
    """Digests of a rollout.

    `question` is a digest of its task spec, and `content` one of its task spec and completions.
    """

    question: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class Likeness:
    """The minhashes by which a rollout is compared with others of its party for the same question.

    `is_remembered` is whether later rollouts are compared with this one (see the module), and
    `is_long` whether the completions have LONG_BYTES or more on average. `marks` has minhashes of 4
    bytes each: if `is_remembered`, those that occur in only one completion; if only `is_long`, all
    of them; otherwise none.
    """

    marks: bytes = b""
    is_long: bool = False
    is_remembered: bool = False

    def is_near(self, earlier: "Likeness") -> bool:
        """Return whether this rollout is a near-copy of `earlier`, which has the same question.

        Returns False if `earlier.is_remembered` is false.
        """
        if not earlier.is_remembered:
            return False
        mine = set(np.frombuffer(self.marks, np.uint32).tolist())
        others = set(np.frombuffer(earlier.marks, np.uint32).tolist())
        needed = 1 / 2 if self.is_long and earlier.is_long else 7 / 8
        return len(mine & others) >= needed * len(others)


class _Completion(msgspec.Struct):
    text: str


class _Body(msgspec.Struct):
    completions: list[_Completion]


_decoder = msgspec.json.Decoder(_Body)


def digest(*, task: bytes, completions: Sequence[str]) -> Digests:
    """Return digests of a rollout's question and of its content.

    `task` is the rollout's task spec as canonical JSON.
    """
    question = hashlib.sha256(task).digest()[:8]
    # Includes the lengths, so that different lists of texts never give the same bytes.
    lengths = ",".join(map(str, map(len, completions)))
    whole = "".join([lengths, ":", *completions]).encode("utf-8", "surrogatepass")
    return Digests(question, hashlib.sha256(question + whole).digest()[:16])


def compute_body_likeness(body: bytes) -> Likeness:
    """Return the likeness of a rollout given as JSON."""
    return compute_likeness([completion.text for completion in _decoder.decode(body).completions])


def compute_likeness(completions: Sequence[str]) -> Likeness:
    """Return the likeness of a rollout that has these completions (one or more)."""
    texts = [text.encode("utf-8", "surrogatepass") for text in completions]
    is_long = sum(map(len, texts)) >= LONG_BYTES * len(texts)
    if not is_long and (len(texts) < _MIN_SHORT or len(set(texts)) < len(texts)):
        return Likeness()
    values = Counter(_minhashes([text for text in texts if text]))
    marks = [value for value, times in values.items() if times == 1]
    if len(marks) < (7 / 8 if is_long else 1) * len(texts) * len(_SLOTS):
        return Likeness(_pack(values) if is_long else b"", is_long)
    return Likeness(_pack(marks), is_long, is_remembered=True)


def _pack(values: Iterable[int]) -> bytes:
    return np.fromiter(values, np.uint32).tobytes()


def _minhashes(texts: Sequence[bytes]) -> list[int]:
    """Return the minhashes of texts: first one for each text in slot 0, then in slot 1, and so on.

    A slot is one of the four hash functions. No text may be empty.
    """
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
