"""How fast a node answers the judge, beside how fast it generates in training.

A model generates an answer to the judge as it generates a completion in training. A node that is
far faster at the one than at the other has its answers from elsewhere. This is a figure for people
to look at: both sides of it are what the node shows of itself.
"""

from dataclasses import dataclass

from django.db.models import Count, Max

from judge.models import Answer, Score, Season
from swarm_web.nodes.models import Node
from swarm_web.relay.selectors import training_points

# Honest nodes pause in training and update their weights: those of the demo, which rest for most
# of a step, answer four times as fast.
SUSPICIOUS_RATIO = 100.0


@dataclass(frozen=True)
class AnswerSpeed:
    """In round `number`, `answers` arrived within `milliseconds` after the questions had been sent.

    `training` is how many completions a second the node generates in training, by its reports;
    None if it reported too little.
    """

    number: int
    answers: int
    milliseconds: int
    training: float | None

    @property
    def ratio(self) -> float | None:
        """How many times as fast it answers as it generates in training."""
        if not self.training:
            return None
        return 1000 * self.answers / max(1, self.milliseconds) / self.training

    @property
    def times(self) -> int:
        """The ratio as a whole number, 0 if it is not known."""
        return round(self.ratio or 0)

    @property
    def is_suspicious(self) -> bool:
        """Whether its model can hardly have written the answers."""
        return self.ratio is not None and self.ratio > SUSPICIOUS_RATIO


def read_answer_speed(node: Node, season: Season, last: Score) -> AnswerSpeed | None:
    """Return the speed in the node's last result, None if it answered nothing there."""
    answers = Answer.objects.filter(node=node, question__round=last.round_id)
    found = answers.aggregate(answers=Count("pk"), latency_ms=Max("latency_ms"))
    if not found["answers"] or found["latency_ms"] is None:
        return None
    return AnswerSpeed(
        number=last.round.number,
        answers=found["answers"],
        milliseconds=found["latency_ms"],
        training=_training_speed(node, season),
    )


def _training_speed(node: Node, season: Season) -> float | None:
    """Return completions a second between the last two points that the node's reports left."""
    points = training_points(node, season_id=season.pk, limit=2)
    if len(points) < 2:
        return None
    before, now = points
    steps, seconds = now.step - before.step, (now.at - before.at).total_seconds()
    if steps <= 0 or seconds <= 0:
        return None
    rollouts = season.batch or season.local + season.external
    return steps * rollouts * season.completions / seconds
