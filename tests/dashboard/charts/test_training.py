"""Test the charts of training: reward, informative share and reflection over steps."""

from swarm_web.dashboard.charts.training import draw_reflection, draw_training
from swarm_web.relay.models import TrainingPoint


def report(
    step: int, reward: float, informative: float, reflection: dict[str, float]
) -> TrainingPoint:
    return TrainingPoint(
        step=step, training_reward=reward, informative_share=informative, reflection=reflection
    )


STEPS = [
    report(2, 0.25, 0.5, {}),
    report(4, 0.5, 0.75, {"recheck": 0.1, "hesitation": 0.2}),
]


def test_reward_and_informative_share_are_separate_lines() -> None:
    reward, informative = draw_training(STEPS)["data"]
    assert (reward["x"], reward["y"]) == ([2, 4], [0.25, 0.5])
    assert informative["y"] == [0.5, 0.75]
    assert reward["line"]["dash"] != informative["line"]["dash"]


def test_steps_without_reflection_are_omitted() -> None:
    lines = draw_reflection(STEPS)["data"]
    assert [line["x"] for line in lines] == [[4]] * 3
    assert [line["y"] for line in lines] == [[0.1], [0.2], [None]]
    assert len({line["line"]["dash"] for line in lines}) == 3


def test_charts_without_steps_are_empty() -> None:
    assert draw_training([])["data"] == []
    assert draw_reflection(STEPS[:1])["data"] == []


def test_largest_reportable_step_can_be_drawn() -> None:
    steps = [report(0, 0.5, 0.5, {}), report(2**53, 0.5, 0.5, {})]
    assert draw_training(steps)["layout"]["xaxis"]["dtick"] == 10**15
