"""Lab reports as `swarm-node lab` writes them, with numbers that a test chooses.

They are constructed here because the site does not import torch or the client. That it can read
the client's own reports is tested with the client (`tests/node_client/lab/test_site.py`).
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]
QUESTIONS = [
    *("sparse", "recipe", "map", "rival", "mechanism", "oscillation"),
    *("heterogeneous", "poisoning", "srpo"),
]
ROUNDS = 40
SEEDS = [1, 2, 3, 4, 5, 6]
SETTINGS = 'name = "sharing"\nquestion = "Does sharing help?"\n'
# Own reward of the last round, by arm.
OWN = {"8/0": 0.1, "4/4": 0.2, "4/4 sender": 0.3}


def write_report(folder: Path, **changes: Any) -> Path:
    """Write a report with its experiment and two compressed runs, and return the directory."""
    (folder / "runs").mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(make_report(**changes)))
    (folder / "experiment.toml").write_text(SETTINGS)
    for arm in ("8-0", "4-4"):
        lines = f'{{"kind":"run","arm":"{arm}"}}\n'.encode()
        (folder / "runs" / f"{arm}-1.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))
    return folder


def publish_sharing(folder: Path) -> None:
    """Write a report and a summary in which sharing helps, and a recipe is better still."""
    write_report(folder / "sharing")
    better = make_finding(arm="4/4 sender", against="4/4", gain=1.5, gain_low=1.3, gain_high=1.8)
    write_summary(
        folder,
        sparse=make_answer(make_finding()),
        recipe=make_answer(better, confirmed_on_unseen=True),
    )


def write_summary(folder: Path, **answers: Json) -> None:
    """Write the summary beside the directories of the reports."""
    unanswered = {"sentence": "Not measured yet.", "figures": []}
    content = {key: answers.get(key, unanswered) for key in QUESTIONS}
    (folder / "summary.json").write_text(json.dumps(content))


def make_answer(*findings: Json, **more: Any) -> Json:
    return {"sentence": "Said in English.", "figures": list(findings), **more}


def make_finding(
    *,
    report: str = "sharing",
    experiment: str = "sharing",
    holds: bool | None = True,
    phase: str = "confirmatory",
    **comparison: Any,
) -> Json:
    return {
        "report": report,
        "experiment": experiment,
        "phase": phase,
        "expects": "nothing" if holds is None else "more",
        "at_least": None if holds is None else 1.94,
        "holds": holds,
        "comparison": make_comparison(**comparison),
    }


def make_comparison(**changes: Any) -> Json:
    content = {
        "arm": "4/4",
        "against": "8/0",
        "outcome": "own",
        "group": None,
        "seeds": len(SEEDS),
        "gain": 2.17,
        "gain_low": 1.9,
        "gain_high": 2.5,
        "difference": 2.0,
        "difference_low": 1.6,
        "difference_high": 2.4,
        "p": 0.03125,
        "p_greater": 0.015625,
        "p_adjusted": 0.03125,
        "least_p": 0.03125,
    }
    return content | changes


def make_report(*, own: Mapping[str, float] = OWN, **changes: Any) -> Json:
    """Return a report in which own reward rises linearly to these levels."""
    arms = {name: make_arm(name, level) for name, level in own.items()}
    baseline, *others = own
    content = {
        "format": 1,
        "name": "sharing",
        "question": "Does sharing help?",
        "phase": "confirmatory",
        "design": "304eea48de23d3dc",
        "settings": SETTINGS,
        "baseline": baseline,
        "rounds": ROUNDS,
        "seeds": SEEDS,
        "left_out": [],
        "missing": [],
        "headline": "4/4 gained over 8/0 in cumulative own reward.",
        "notes": ["With 6 paired seeds p is at least .031."],
        "take_off_at": 0.1,
        "arms": list(arms.values()),
        "comparisons": [
            make_comparison(arm=name, against=baseline, gain=own[name] / (own[baseline] or 1))
            for name in others
        ],
        "horizons": [
            {
                "arm": "4/4",
                "gains": [
                    {"rounds": 50, "gain": 4.8, "gain_low": 3.9, "gain_high": 6.1},
                    {"rounds": 100, "gain": 2.17, "gain_low": 1.9, "gain_high": 2.5},
                ],
            }
        ],
        "onsets": [make_onset(name, own[name] - own[baseline]) for name in others],
        "reached": [{"arm": "4/4", "runs": 5, "rounds": 20.0, "tokens": 61500.0}],
        "paper": [
            {"name": "8/0", "total": 561.79, "gain": 1.0},
            {"name": "4/4", "total": 1093.31, "gain": 1.94},
        ],
        "differences": ["40 rounds, in place of 2,000."],
        "commands": ["swarm-node lab run experiment.toml --out DIR", "swarm-node lab report DIR"],
        "runs": [
            {
                "arm": name,
                "seed": 1,
                "file": f"{name.replace('/', '-')}-1.jsonl",
                "sha256": "ab" * 32,
            }
            for name in own
        ],
    }
    return content | changes


def make_arm(name: str, level: float) -> Json:
    rounds = list(range(1, ROUNDS + 1))
    rising = [level * number / ROUNDS for number in rounds]
    summed = [sum(rising[:number]) for number in rounds]
    return {
        "name": name,
        "design": "0b8f2918cc95aa8e",
        "settings": f"mix = {name}",
        "nodes": 8,
        "attackers": 0,
        "groups": [],
        "own": {"value": summed[-1], "low": 0.9 * summed[-1], "high": 1.1 * summed[-1]},
        "training_set": {"value": 2 * summed[-1], "low": None, "high": None},
        "held_out_area": {"value": level / 2, "low": 0.4 * level, "high": 0.6 * level},
        "held_out_final": None,
        "take_off": None if level < 0.2 else 12.0,
        "tokens": 246629.0,
        "bytes": 6134650.0 * (name != "8/0"),
        "informative_in_set": 10 * level,
        "curves": {
            "own": make_curve(rounds, rising),
            "cumulative": make_curve(rounds, summed),
            "held_out": make_curve(rounds[::10], rising[::10]),
            "informative": make_curve(rounds, rising),
            "length": {"rounds": rounds, "mean": [4.0] * ROUNDS, "low": [], "high": []},
            "reflection": None,
            "poisoned": None,
        },
    }


def make_curve(rounds: list[int], mean: list[float]) -> Json:
    low, high = ([part * value for value in mean] for part in (0.9, 1.1))
    return {"rounds": rounds, "mean": mean, "low": low, "high": high}


def make_onset(arm: str, difference: float) -> Json:
    rounds = list(range(10, ROUNDS + 1))
    return {
        "arm": arm,
        "seeds": len(SEEDS),
        "rounds": rounds,
        "difference": [difference * number / ROUNDS for number in rounds],
        "band": [0.02] * len(rounds),
        "first": 14,
        "stays": 15,
    }
