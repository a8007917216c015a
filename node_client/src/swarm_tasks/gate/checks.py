"""The criteria that a generator must meet to be allowed.

`measure_dataset` checks them in the order of the list in `docs/tasks.md`. Every measurement runs in
a process of its own, so the worst that a generator can do is fail.
"""

import json
import statistics
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from swarm_tasks.child.generators import build_entry, open_dataset
from swarm_tasks.gate import probes
from swarm_tasks.gate.answers import CONSTANTS, EXECUTING, HANGING, JUNK
from swarm_tasks.gate.isolate import HungError, IsolatedError, run_isolated, succeeds_isolated
from swarm_tasks.gate.probes import SEED, Entry, ProbedEntries
from swarm_tasks.gate.ranges import SLOWEST_ENTRY_S, settable_fields
from swarm_tasks.gate.source import executing_calls
from swarm_tasks.gate_records import Measured
from swarm_tasks.keyspace import INDEX_END
from swarm_tasks.step_board import SOLVED

MAX_JUNK_SCORE = 0.2
MAX_CONSTANT_SCORE = 0.8
_STAGE_DEADLINE_S = 60.0
# The larger sample, whose entries are timed and tried with wrong answers.
_TIMES_AS_MANY, _SAMPLE_DEADLINE_S = 10, 300.0
_HANG_DEADLINE_S = 10.0
_MANY, _MANY_S = 5_000, 5.0


@dataclass
class Findings:
    """What was found about a dataset.

    `reasons` maps the code of each reason against the dataset to its text. `figures` has measured
    values by name.
    """

    reasons: dict[str, str] = field(default_factory=dict)
    figures: dict[str, bool | int | float | str | None] = field(default_factory=dict)


def measure_dataset(name: str, count: int, foreign_fingerprint: str | None) -> Measured:
    """Measure a dataset, and return its entry for the allow-list.

    The measurements use a sample of ten times `count` entries. The time that entries take and the
    scores of wrong answers are measured with the whole sample. The first `count` entries are
    checked for reproducibility and right answers. `foreign_fingerprint` is the result of
    `fingerprint` under another PYTHONHASHSEED.

    If a measurement fails, the dataset is not allowed, and the entry's reasons say so. Raises
    IsolatedError only if the dataset cannot be opened.
    """
    findings = Findings()
    category = run_isolated(_STAGE_DEADLINE_S, _category, name)
    by_index = serves_any_index(name)
    try:
        sample = run_isolated(
            _SAMPLE_DEADLINE_S,
            probes.make_sample,
            name,
            _TIMES_AS_MANY * count,
            by_index=by_index,
        )
        entries = sample.entries[:count]
        _check_reproducible(name, entries, foreign_fingerprint, findings)
        _check_time(sample, findings)
        _check_rare_entries(name, by_index, findings)
        _check_right_answers(name, entries, findings)
        _check_wrong_answers(name, sample.entries, findings, few=count)
        _check_hangs(name, entries[:2], findings)
        _check_execution(name, entries[:3], findings)
    except IsolatedError as problem:
        findings.reasons["not_measured"] = f"a measurement failed: {problem}"
    allowed = not findings.reasons
    fields = settable_fields(name, by_index=by_index) if allowed else {}
    return Measured(allowed, category, findings.reasons, findings.figures, by_index, fields)


def serves_any_index(name: str) -> bool:
    """Return whether the dataset makes an entry for any index. Only the largest index is tried."""
    return succeeds_isolated(
        _STAGE_DEADLINE_S, build_entry, name, {}, seed=0, index=INDEX_END - 1, by_index=True
    )


def fingerprint(name: str, count: int) -> str | None:
    """Return a hash of a sample of `count` entries of a dataset, None if they cannot be made.

    The entries are made in reverse order. If entries depend on those made before them, the hash
    differs from that of a sample made in order.
    """
    by_index = serves_any_index(name)
    try:
        sample = run_isolated(
            _STAGE_DEADLINE_S,
            probes.make_sample,
            name,
            count,
            by_index=by_index,
            backwards=True,
        )
    except IsolatedError:
        return None
    return probes.hash_entries(sample.entries)


def _category(name: str) -> str:
    return str(open_dataset(name, {}, seed=SEED).category)


def _check_reproducible(
    name: str, entries: list[Entry], foreign: str | None, findings: Findings
) -> None:
    here, again = probes.hash_entries(entries), fingerprint(name, len(entries))
    if here != again:
        findings.reasons["not_deterministic"] = "the same spec gives different entries in two runs"
    elif here != foreign:
        findings.reasons["not_deterministic"] = "entries depend on PYTHONHASHSEED"


def _check_time(sample: ProbedEntries, findings: Findings) -> None:
    worst = max(sample.seconds)
    findings.figures["entry_ms_below"] = _power_of_ten(statistics.median(sample.seconds) * 1000)
    findings.figures["slowest_entry_ms_below"] = _power_of_ten(worst * 1000)
    if worst > SLOWEST_ENTRY_S:
        findings.reasons["slow_entries"] = (
            f"one of {len(sample.seconds)} entries took {worst:.1f} s of processor time to make"
        )


def _check_rare_entries(name: str, by_index: bool, findings: Findings) -> None:
    """Make thousands of entries, and add a reason to `findings` if one hangs.

    This matters because a publishing node may choose any index.
    """
    try:
        run_isolated(_MANY_S + SLOWEST_ENTRY_S, _make_many, name, by_index)
    except HungError:
        findings.reasons["entry_hangs"] = f"one of up to {_MANY:,} entries never ends"


def _make_many(name: str, by_index: bool) -> None:
    """Generate random entries and discard them: at most _MANY, for at most _MANY_S of CPU time.

    An index at which the generator raises is skipped, as in a draw. `Measured` explains
    `by_index`.
    """
    rng, until = Random(SEED), time.process_time() + _MANY_S
    for _ in range(_MANY):
        if time.process_time() > until:
            return
        with suppress(Exception):
            index = rng.randrange(INDEX_END)
            build_entry(name, {}, seed=SEED, index=index, by_index=by_index)


def _power_of_ten(value: float) -> float:
    """Return the smallest power of ten that is not below `value`, at least 0.1.

    The allow-list has such bounds, because exact timings would change it in every run of the gate.
    """
    bound = 0.1
    while bound < value:
        bound *= 10
    return round(bound, 1)


def _check_right_answers(name: str, entries: list[Entry], findings: Findings) -> None:
    if any(not isinstance(entry["answer"], str) for entry in entries):
        findings.reasons["no_answer_key"] = "entries hold no right answer"
        return
    scores, milliseconds = run_isolated(_STAGE_DEADLINE_S, _score_right, name, entries)
    findings.figures["right_answer"] = round(statistics.fmean(scores), 3)
    findings.figures["score_ms_below"] = _power_of_ten(milliseconds)
    if min(scores) < SOLVED:
        findings.reasons["right_answer_fails"] = f"a right answer scores {min(scores):.2f}"
        return
    travelled = json.loads(json.dumps(entries, default=str))
    after_json, _ = run_isolated(_STAGE_DEADLINE_S, _score_right, name, travelled)
    if min(after_json) < SOLVED:
        findings.reasons["json_loses_tuples"] = (
            f"right answers score {statistics.fmean(after_json):.2f} once the entry was JSON"
        )
    if run_isolated(_STAGE_DEADLINE_S, probes.changes_entry, name, entries):
        findings.reasons["entry_changed"] = "scoring changes the entry"


def _score_right(name: str, entries: list[Entry]) -> tuple[list[float], float]:
    """Return the scores of the right answers, and the milliseconds that scoring one takes."""
    pairs = [(entry, str(entry["answer"])) for entry in entries]
    scores = probes.score_pairs(name, pairs)
    start = time.process_time()
    probes.score_pairs(name, [])
    building = time.process_time() - start
    probes.score_pairs(name, pairs)
    scoring = time.process_time() - start - 2 * building
    return scores, max(scoring, 0.0) * 1000 / len(pairs)


def _check_wrong_answers(name: str, entries: list[Entry], findings: Findings, *, few: int) -> None:
    """Add to `findings` the best mean score of junk answers, and that of constant answers.

    Add a reason for a score that is too high or cannot be measured. `best_text` explains `few`.
    """
    usual = Counter(str(entry["answer"]) for entry in entries).most_common(5)
    constants = (*CONSTANTS, *(answer for answer, _ in usual))
    for code, texts, limit in (
        ("junk", JUNK, MAX_JUNK_SCORE),
        ("constant", constants, MAX_CONSTANT_SCORE),
    ):
        try:
            best, text = run_isolated(
                _STAGE_DEADLINE_S, probes.best_text, name, entries, texts, few=few
            )
        except IsolatedError as problem:
            findings.reasons["wrong_answer_fails"] = f"wrong answers: {problem}"
            continue
        findings.figures[f"best_{code}"] = round(best, 2)
        findings.figures[f"best_{code}_text"] = text[:40] if best > 0 else None
        if best >= limit:
            findings.reasons[f"{code}_rewarded"] = (
                f"{text[:40]!r} scores {best:.2f} on average whatever the question"
            )


def _check_hangs(name: str, entries: list[Entry], findings: Findings) -> None:
    pairs = [(entry, text) for entry in entries for text in HANGING]
    try:
        run_isolated(_HANG_DEADLINE_S, probes.score_pairs, name, pairs)
    except HungError:
        findings.reasons["answer_hangs"] = "a short answer makes the verifier hang"
    except IsolatedError as problem:
        findings.reasons["answer_hangs"] = f"a short answer stops the verifier: {problem}"


def _check_execution(name: str, entries: list[Entry], findings: Findings) -> None:
    answers = [(entry, text) for entry in entries for text in EXECUTING]
    if run_isolated(_STAGE_DEADLINE_S, probes.executes, name, answers):
        findings.reasons["answer_executed"] = "the verifier executes the answer's text"
    poisoned = [pair for entry in entries for pair in probes.poisoned_pairs(entry)]
    if run_isolated(_STAGE_DEADLINE_S, probes.executes, name, poisoned):
        findings.reasons["entry_executed"] = "the verifier executes text of the entry"
    if calls := executing_calls(name):
        findings.reasons["executing_call"] = f"the verifier calls {', '.join(calls)}"
