"""A view with every part filled, for tests of the panel."""

from collections import Counter

from node_client.display.view import NodeView
from node_client.learning.report import ShownExample, StepReport, TrainingTotals
from node_client.site import Site
from node_client.swarm.connection import ConnectionState
from swarm_protocol.messages import NodeStanding, RoundInfo
from swarm_tasks.verdicts import Verdict
from tests.node_client.fakes import toy_season


def report(*, reward: float = 0.25, completion: str = "<answer>7</answer>") -> StepReport:
    return StepReport(
        step=1234,
        training_reward=reward,
        informative_share=0.5,
        generated=8,
        solved={"chain_sum": reward},
        local_used=4,
        external_used=4,
        external_dropped={"not_informative": 3},
        loss=0.1,
        grad_norm=0.5,
        clip_ratio=0.0,
        completion_length=12.0,
        clipped_ratio=0.1,
        reflection={"recheck": 0.0, "hesitation": 0.0, "exploration": 0.0},
        seconds={"generate": 0.5, "backward": 0.25},
        training_set_reward=0.5,
        training_set_informative=0.75,
        completion_tokens=384,
        example=ShownExample("What is 3 + 4?", completion, Verdict(score=1.0, reason="right")),
    )


def totals() -> TrainingTotals:
    return TrainingTotals(4900, 2100, Counter({"not_informative": 300, "duplicate": 12}))


def full_view() -> NodeView:
    view = NodeView(
        model="tiny",
        parameters=180_000,
        device="cpu",
        arm="swarm",
        site=Site("https://swarm.example.org"),
        node="amber-quiet-heron",
        connection=ConnectionState("connected"),
        season=toy_season(),
        published=1200,
        unpublished=8,
        round=RoundInfo(7, "open", "2026-01-01T11:55:00Z", "2026-01-01T12:01:35Z", 64),
    )
    view.show_standing(
        NodeStanding(
            *(None, "amber-quiet-heron", (3, 5), 0.345, (0.31, 0.38), 640, 10, 900, "", 12),
            published=1590,
            delivered_to_others=3410,
            used_by_others=1304,
        )
    )
    view.published += 10  # since the coordinator reported its figures
    view.answered[7] = 32
    for step in range(120):
        view.show_step(report(reward=step / 150), totals())
    return view
