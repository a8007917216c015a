"""A column of a download: what it is called, where it is read, what it means."""

from dataclasses import dataclass

from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Kind(TextChoices):
    """What a column holds; any value may be missing."""

    TEXT = "text", _("text")
    WHOLE = "whole", _("integer")
    FRACTION = "fraction", _("number")
    TIME = "time", _("time in UTC")
    TRUTH = "truth", _("boolean")
    NESTED = "nested", _("object or list")


@dataclass(frozen=True)
class Column:
    """One column: its name for readers, the field that it is read from, and its meaning."""

    name: str
    field: str
    kind: Kind
    meaning: str | Promise
