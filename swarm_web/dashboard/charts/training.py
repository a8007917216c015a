"""Figures of a node's training, from the node's own reports; no I/O."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from swarm_web.dashboard.charts.parts import (
    NEUTRAL,
    Figure,
    draw_line,
    layout_shares,
)
from swarm_web.relay.models import TrainingPoint

# Colours that no arm has, each with its own dash.
_KINDS = {
    "recheck": ("#009e73", "solid"),
    "hesitation": ("#cc79a7", "dash"),
    "exploration": ("#b38600", "dot"),
}


def draw_training(steps: Sequence[TrainingPoint]) -> Figure:
    """Draw the training reward and the share of informative rollouts over steps."""
    colour, _rgb = NEUTRAL
    at = [step.step for step in steps]
    reward = draw_line(
        at, [step.training_reward for step in steps], name=_("training reward"), colour=colour
    )
    informative = draw_line(
        at,
        [step.informative_share for step in steps],
        name=_("informative share"),
        colour="#7a7f87",
        dash="dot",
    )
    return _finish([reward, informative], at, title=_("training reward and share"))


def draw_reflection(steps: Sequence[TrainingPoint]) -> Figure:
    """Draw the share of completions with each kind of reflection, such as rechecking, over steps.

    Steps without a report of reflection are left out.
    """
    reflected = [step for step in steps if step.reflection]
    at = [step.step for step in reflected]
    names = name_kinds()
    lines = [
        draw_line(
            at,
            [s.reflection.get(kind) for s in reflected],
            name=names[kind],
            colour=colour,
            dash=dash,
        )
        for kind, (colour, dash) in _KINDS.items()
    ]
    return _finish(lines, at, title=_("share of completions"))


def name_kinds() -> dict[str, str]:
    """Return the label of each kind of reflection, by its key in training reports."""
    return {
        "recheck": _("rechecking"),
        "hesitation": _("hesitation"),
        "exploration": _("exploration"),
    }


def _finish(lines: Sequence[Figure], at: Sequence[int], *, title: str) -> Figure:
    hover = {"hovertemplate": "%{y:.3f}"}
    layout = layout_shares(at, title=title, over=_("training step"))
    return {"data": [line | hover for line in lines] if at else [], "layout": layout}
