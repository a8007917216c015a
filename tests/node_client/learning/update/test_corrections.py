"""Rows of other nodes: the denominator of their ratio, and how false claims are bounded."""

import math

import pytest
import torch
from torch import Tensor

from node_client.learning.rollouts import SenderLogprobs
from node_client.learning.update.losses import ClippedLoss, Correction, Objective, Tokens
from node_client.learning.update.rows import TrainingRow, denominators, sequence_weight
from node_client.settings.choices import ExternalShaping, Importance, SequenceImportance
from node_client.settings.train_config import TrainConfig

BEFORE = torch.tensor([[-1.0, -2.0, 0.0], [-0.5, -0.25, -0.75]])


def row(
    *, length: int = 3, external: bool = True, sender: SenderLogprobs | None = None
) -> TrainingRow:
    return TrainingRow([5], [6] * length, 1.0, 1.0, external=external, sender=sender)


def corrected(
    *rows: TrainingRow, importance: Importance = "sender", shaping: ExternalShaping = "none"
) -> tuple[Tensor, Correction]:
    config = TrainConfig(importance=importance, external_shaping=shaping)
    old, correction = denominators(rows, before=BEFORE[: len(rows)], config=config)
    assert correction is not None
    return old, correction


def gradient_of(logprobs: list[float], *, advantage: float, correction: Correction) -> Tensor:
    """Return the gradient of one row's loss, whose sender claimed that it was nearly impossible."""
    values = torch.tensor([logprobs], requires_grad=True)
    tokens = Tokens(
        logprobs=values,
        old_logprobs=torch.full_like(values, -31.9995),
        mask=torch.ones_like(values),
        advantages=torch.tensor([advantage]),
        weights=torch.tensor([1.0]),
        correction=correction,
    )
    (gradient,) = torch.autograd.grad(
        ClippedLoss().compute(tokens, objective=Objective()).value, values
    )
    return gradient


def test_own_rows_are_divided_by_own_log_probs() -> None:
    old, correction = denominators(
        [row(external=False)], before=BEFORE[:1], config=TrainConfig(importance="sender")
    )
    assert old is not None
    assert torch.equal(old, BEFORE[:1])
    assert correction is None


def test_row_with_token_log_probs_is_divided_by_them_and_capped() -> None:
    sender = SenderLogprobs(-1.5, [-1.0, -0.5])
    old, correction = corrected(row(length=2, sender=sender), row(external=False))
    assert old.tolist() == [[-1.0, -0.5, 0.0], [-0.5, -0.25, -0.75]]
    assert correction.cap.tolist() == [3.0, math.inf]
    assert correction.weight.tolist() == [1, 1]


@pytest.mark.parametrize("importance", ["own", "none"])
def test_log_probs_of_the_sender_are_ignored_unless_configured(importance: Importance) -> None:
    claims = [row(sender=SenderLogprobs(-9.0, [-3.0] * 3)), row(sender=SenderLogprobs(-9.0))]
    old, correction = corrected(*claims, importance=importance)
    assert torch.equal(old, BEFORE)
    assert correction.weight.tolist() == [1, 1]


def test_row_with_only_a_sum_is_weighted_as_a_whole() -> None:
    old, correction = corrected(row(length=2, sender=SenderLogprobs(-3.5)))
    assert torch.equal(old, BEFORE[:1])
    assert correction.weight.item() == pytest.approx(math.exp(0.5))


@pytest.mark.parametrize(
    ("kind", "log_ratio", "weight"),
    [
        ("truncate", 5.0, 3.0),
        ("truncate", -5.0, math.exp(-5)),
        ("truncate", 1e6, 3.0),
        ("mask", 5.0, 0.0),
        ("mask", -5.0, 0.0),
        ("mask", 1.0, math.e),
        ("mask", 1e6, 0.0),
    ],
)
def test_weight_of_a_sequence_is_truncated_or_masked_at_the_cap(
    kind: SequenceImportance, log_ratio: float, weight: float
) -> None:
    config = TrainConfig(sequence_importance=kind)
    given = sequence_weight(torch.tensor(log_ratio), length=4, config=config)
    assert given.item() == pytest.approx(weight)


def test_weight_is_a_geometric_mean_if_ratios_are_by_sequence() -> None:
    config = TrainConfig(importance_sampling_level="sequence", loss_type="grpo")
    weight = sequence_weight(torch.tensor(2.0), length=4, config=config)
    assert weight.item() == pytest.approx(math.exp(0.5))


@pytest.mark.parametrize("importance", ["own", "sender"])
def test_luffy_shapes_external_rows_without_log_probs(importance: Importance) -> None:
    _, correction = corrected(row(), row(external=False), importance=importance, shaping="luffy")
    assert correction.shaped.tolist() == [True, False]


def test_luffy_does_not_shape_rows_corrected_by_the_sender() -> None:
    claims = [row(sender=SenderLogprobs(-3.0, [-1.0] * 3)), row(sender=SenderLogprobs(-3.0))]
    _, correction = corrected(*claims, shaping="luffy")
    assert correction.shaped.tolist() == [False, False]


@pytest.mark.parametrize("probability", [1e-6, 0.01, 0.1, 0.9])
def test_luffy_gives_the_gradient_of_its_formula(probability: float) -> None:
    shaped = Correction(torch.tensor([math.inf]), torch.ones(1), torch.tensor([True]))
    gradient = gradient_of([math.log(probability)], advantage=-2.0, correction=shaped)
    # d/dlog p of p / (p + 0.1), times the advantage
    expected = 2.0 * 0.1 * probability / (probability + 0.1) ** 2
    assert gradient.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("advantage", "gradient"), [(1.0, 0.0), (-1.0, 3.0)])
def test_claim_of_a_tiny_probability_counts_only_up_to_the_cap(
    advantage: float, gradient: float
) -> None:
    bounded = Correction(torch.tensor([3.0]), torch.ones(1), torch.tensor([False]))
    found = gradient_of([-0.5, -1.0], advantage=advantage, correction=bounded)
    assert found.flatten().tolist() == pytest.approx([gradient] * 2)


def test_weight_multiplies_the_loss_of_its_row() -> None:
    logprobs = torch.zeros(2, 1, requires_grad=True)
    tokens = Tokens(
        logprobs=logprobs,
        old_logprobs=torch.zeros(2, 1),
        mask=torch.ones(2, 1),
        advantages=torch.tensor([1.0, 1.0]),
        weights=torch.tensor([0.5, 0.5]),
        correction=Correction(
            torch.full((2,), math.inf), torch.tensor([1.0, 0.25]), torch.zeros(2).bool()
        ),
    )
    (gradient,) = torch.autograd.grad(
        ClippedLoss().compute(tokens, objective=Objective()).value, logprobs
    )
    assert gradient.flatten().tolist() == [-0.5, -0.125]
