"""What a node's title may hold: plain text in any language that stays where it stands.

A title is shown beside other texts, so it holds no control characters and none that turn the text
around them. Joiners are the exception: Persian and some emoji need them.
"""

import unicodedata

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

LONGEST = 64
_JOINERS = {"\u200c", "\u200d"}
# Control, format, surrogate, private and unassigned characters; separators of lines and paragraphs.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def validate_title(title: str) -> None:
    """Raise ValidationError if a title holds what is not shown as it stands."""
    if any(unicodedata.category(sign) in _UNFIT and sign not in _JOINERS for sign in title):
        raise ValidationError(
            _("A title is plain text without control characters or direction marks."),
            code="title",
        )
    if title and not title.strip(" \u200c\u200d"):
        raise ValidationError(_("A title needs at least one visible character."), code="title")
