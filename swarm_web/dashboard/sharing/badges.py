"""Badges, as JSON for shields.io and as values for the template `sharing/badge.svg`.

The JSON follows https://shields.io/badges/endpoint-badge.
"""

from dataclasses import dataclass
from typing import Any

from swarm_web.dashboard.sharing.cards import measure
from swarm_web.dashboard.sharing.facts import NodeFacts, SiteFacts, describe_node, describe_site

# How long shields.io caches a badge, in seconds.
CACHE_S = 300
# The background by arm: its colour, dark enough for white text.
_BEHIND = {"swarm": "#00619a", "isolated": "#a64900", "base": "#5d6670"}
_GREY = "#5d6670"
_ACCENT = "#2f5fd0"
_FONT_PX = 11
_PADDING = 7


@dataclass(frozen=True)
class Badge:
    """A label, a message, and the message's background colour."""

    label: str
    message: str
    colour: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON from which shields.io draws a badge."""
        return {
            "schemaVersion": 1,
            "label": self.label,
            "message": self.message,
            "color": self.colour.removeprefix("#"),
            "labelColor": "1b1f24",
            "cacheSeconds": CACHE_S,
        }

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of label and message in pixels, with their padding."""
        label, message = (measure(text, _FONT_PX) for text in (self.label, self.message))
        return round(label) + 2 * _PADDING, round(message) + 2 * _PADDING


def make_node_badge(facts: NodeFacts) -> Badge:
    """Return a node's badge: its name, rank and score, in its arm's colour; grey if not judged."""
    colour = _GREY if facts.score is None else _BEHIND[facts.arm]
    return Badge(facts.name, describe_node(facts), colour)


def make_site_badge(facts: SiteFacts) -> Badge:
    """Return the site's badge: its name, the number of connected nodes, and any current round."""
    return Badge(facts.name, describe_site(facts), _ACCENT)
