"""The owner is notified of lack of memory and of skipped updates, which credit no other node."""

import math

import pytest
from torch import Tensor

from node_client.learning.notices import MAX_OVERFLOWS_FP16, Notices
from node_client.learning.update.updater import UpdateReport
from node_client.settings.choices import Precision
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer, toy_policy

GOOD = UpdateReport(loss=0.1, grad_norm=1.0, clip_ratio=0.0)
OVERFLOWN = UpdateReport(loss=0.1, grad_norm=math.inf, clip_ratio=0.0)
BROKEN = UpdateReport(loss=math.nan, grad_norm=math.nan, clip_ratio=0.0)


@pytest.mark.parametrize("infinite", [True, False])
def test_step_with_an_infinite_gradient_is_reported_and_credits_no_rollouts(
    verifier: Verifier, infinite: bool
) -> None:
    policy = toy_policy()

    def overflow(gradient: Tensor) -> Tensor:
        return gradient * math.inf if infinite else gradient

    policy.trainable()[0].register_hook(overflow)  # type: ignore[no-untyped-call]
    texts = ("<answer>{sum}</answer>", "no", "no", "no")
    pool = PoolInMemory([external_sum(verifier, texts, counter=n) for n in range(8)])
    report = make_trainer(verifier, policy=policy, exchange=pool).step()
    assert report.external_used == 2
    assert math.isfinite(report.loss)
    assert len(report.used) == (0 if infinite else 2)
    assert ("The gradient was not finite" in (report.notice or "")) is infinite


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_non_finite_loss_is_reported_immediately(precision: Precision) -> None:
    notices = Notices(toy_policy(), TrainConfig(precision=precision))
    assert "The loss was not a finite number" in (notices.end_step(BROKEN) or "")


@pytest.mark.parametrize(
    ("iterations", "skipped"),
    [(1, "so the step changed"), (2, "so the last pass of the step changed")],
)
def test_notice_names_what_was_skipped(iterations: int, skipped: str) -> None:
    notices = Notices(toy_policy(), TrainConfig(num_iterations=iterations))
    assert skipped in (notices.end_step(BROKEN) or "")


def test_overflowing_gradients_are_reported_only_if_they_persist() -> None:
    notices = Notices(toy_policy(), TrainConfig(precision="fp16"))
    reported = [notices.end_step(OVERFLOWN) is not None for _ in range(MAX_OVERFLOWS_FP16)]
    assert reported == [False] * (MAX_OVERFLOWS_FP16 - 1) + [True]
    assert notices.end_step(GOOD) is None
    assert notices.end_step(OVERFLOWN) is None


def test_lack_of_memory_is_reported_once_whether_in_a_step_or_before_it() -> None:
    policy = toy_policy()
    notices = Notices(policy, TrainConfig())
    policy.sampling_budget.lower(0.5)  # in a judge round
    policy.update_budget.lower(0.5)
    reported = notices.end_step(GOOD) or ""
    assert "sampled, so 16384 tokens are sampled at once instead of 32768" in reported
    assert "updates now run 2048 tokens at once instead of 4096" in reported
    assert notices.end_step(GOOD) is None


def test_share_restored_by_a_resumed_run_is_not_reported() -> None:
    policy = toy_policy()
    notices = Notices(policy, TrainConfig())
    policy.update_budget.resume({"share": 0.5, "ran_out": True})
    assert notices.end_step(GOOD) is None
