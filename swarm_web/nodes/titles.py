"""What a node's title may hold: plain text in any language that stays where it stands.

A title is shown beside other texts, so it holds no control characters and none that turn the text
around them. Joiners are the exception: Persian and some emoji need them.
"""

import unicodedata
from itertools import groupby

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

LONGEST = 64
_JOINERS = {"\u200c", "\u200d"}
# Fillers of Hangul and a pattern of Braille without dots: they count as letters, and show nothing.
_BLANKS = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
# Marks on one letter; no script needs more, and a tower of them covers the lines above.
_MOST_MARKS = 4
# Control, format, surrogate, private and unassigned characters; separators of lines and paragraphs.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def validate_title(title: str) -> None:
    """Raise ValidationError if a title holds what is not shown as it stands."""
    if any(_is_unfit(sign) for sign in title):
        raise ValidationError(
            _("A title is plain text without control characters or direction marks."),
            code="title",
        )
    if title and not any(unicodedata.category(sign)[0] in "LNPS" for sign in title):
        raise ValidationError(_("A title needs at least one visible character."), code="title")
    runs = groupby(unicodedata.normalize("NFD", title), key=_is_mark)
    if any(is_mark and len(list(run)) > _MOST_MARKS for is_mark, run in runs):
        raise ValidationError(
            _("A title may have at most four combining marks per letter."), code="title"
        )


def plain_title(title: str) -> str:
    """Return a title's letters in small ASCII where they look like it, to compare it with names.

    Letters of other scripts that look like those of ASCII are not among them.
    """
    return "".join(
        "-" if unicodedata.category(sign) == "Pd" else sign
        for sign in unicodedata.normalize("NFKD", title).casefold()
        if not _is_mark(sign) and sign not in _JOINERS
    ).strip()


def _is_unfit(sign: str) -> bool:
    return sign in _BLANKS or (unicodedata.category(sign) in _UNFIT and sign not in _JOINERS)


def _is_mark(sign: str) -> bool:
    return unicodedata.category(sign).startswith("M")
