"""The paper's own figures (SAPO, arXiv 2509.08721, section 5), and how a set-up is unlike its."""

from collections.abc import Iterator, Sequence

from node_client.lab.config import NodePlan
from node_client.lab.report.claims import seeds_of
from node_client.lab.report.shape import PaperArm
from node_client.lab.results import Results
from node_client.settings.train_config import plan_step

# Total reward over eight nodes of Qwen2.5-0.5B and 2,000 rounds, in one run of each arm.
PAPER = [
    PaperArm("8/0", 561.79, 1.0),
    PaperArm("6/2", 854.43, 1.52),
    PaperArm("4/4", 1093.31, 1.94),
    PaperArm("2/6", 945.87, 1.68),
]
_NODES = 8
_BASE = "Qwen2.5-0.5B"
_ROUNDS = 2_000
_DATASETS = 9
_COMPLETIONS = 8


def unlike_the_paper(results: Results) -> list[str]:
    """Return in which points the experiment's set-up is not the paper's, a sentence each."""
    said = [
        *_unlike_in_size(results),
        f"{seeds_of(len(results.paired))}, in place of one run of each arm.",
        "Own reward leaves others' rollouts out. Whose rewards the paper adds up is not stated;"
        " its public code counts external rollouts too.",
        "Sums are of the mean over nodes; the paper's are over all 8 nodes, so 8 times as large.",
    ]
    if any(_generates_more(data.plans) for data in results.arms):
        said.append(
            "Some arms generate more rollouts in a round than their I (the setting batch; I + J"
            " unless it is set); the paper's generate I."
        )
    return said


def _unlike_in_size(results: Results) -> Iterator[str]:
    season, plans = results.experiment.season, results.baseline.plans
    bases = " and ".join(dict.fromkeys(plan.base for plan in plans))
    if len(plans) != _NODES or _BASE not in bases:
        yield f"{len(plans)} nodes of {bases} instead of {_NODES} of {_BASE}."
    if results.experiment.rounds != _ROUNDS:
        yield f"{results.experiment.rounds:,} rounds, in place of {_ROUNDS:,}."
    datasets = [task.dataset for task in season.tasks]
    if len(datasets) != _DATASETS:
        yield f"Questions of {', '.join(datasets)}, in place of nine datasets."
    if season.completions != _COMPLETIONS:
        yield f"{season.completions} completions of each question, in place of {_COMPLETIONS}."


def _generates_more(plans: Sequence[NodePlan]) -> bool:
    """Whether a node of the arm generates rollouts for which it has no place of its own."""
    steps = [plan_step(plan.config, plan.season) for plan in plans]
    return any(step.batch > step.local for step in steps)
