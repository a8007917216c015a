"""Codes that nodes and rulings count by, in the words of pages; pure."""

from django.utils.translation import gettext as _


def name_code(code: str) -> str:
    """Name a reason why rollouts of others were dropped, or what a ruling changed.

    Nodes report reasons of their own making too: an unknown code loses its underscores.
    """
    known = {
        "own": _("the node's own"),
        "duplicate": _("already received"),
        "foreign": _("from another season"),
        "not_decodable": _("cannot be encoded by its tokenizer"),
        "too_long": _("too long to train on"),
        "unscorable": _("could not be checked"),
        "not_informative": _("not informative"),
        "not_drawn": _("not selected"),
        "answers_changed": _("answers changed"),
        "scores_changed": _("scores changed"),
    }
    return known.get(code, code.replace("_", " "))
