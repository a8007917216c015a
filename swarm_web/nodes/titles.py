"""Validation of node titles: plain text in any language that cannot change the text around it.

A title is shown next to other text, so control characters and characters that change the direction
of text are not allowed. Joiners are allowed, because Persian and some emoji need them.
"""

import unicodedata
from itertools import groupby

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

MAX_LENGTH = 64
_JOINERS = {"\u200c", "\u200d"}
# Hangul fillers and the Braille pattern without dots: letters and a symbol that are invisible.
_BLANKS = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
# Symbols that look like an ASCII hyphen (Unicode's confusables.txt), besides the dashes (category
# Pd): minus signs, the Arabic full stop and the hyphen bullet.
_HYPHENS = {"\u02d7", "\u06d4", "\u2043", "\u2212", "\u2796"}
# Combining marks per letter; no script needs more, and more would cover the lines above.
_MAX_MARKS = 4
# Control, format, surrogate, private and unassigned characters; line and paragraph separators.
_FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def validate_title(title: str) -> None:
    """Raise ValidationError if a title is invalid. An empty title is valid.

    A title must not contain _BLANKS, line or paragraph separators, or control, surrogate,
    private-use or unassigned characters. Of the format characters, only joiners are allowed. At
    least one character must be visible. In the decomposed form (NFD) without joiners, at most
    _MAX_MARKS combining marks may follow each other.
    """
    if any(_is_forbidden(character) for character in title):
        raise ValidationError(
            _("A title is plain text without control characters or direction marks."),
            code="title",
        )
    if title and not any(unicodedata.category(character)[0] in "LNPS" for character in title):
        raise ValidationError(_("A title needs at least one visible character."), code="title")
    # Without joiners: a mark after a joiner is drawn on the same letter.
    joined = "".join(character for character in title if character not in _JOINERS)
    runs = groupby(unicodedata.normalize("NFD", joined), key=_is_mark)
    if any(is_mark and len(list(run)) > _MAX_MARKS for is_mark, run in runs):
        raise ValidationError(
            _("A title may have at most four combining marks per letter."), code="title"
        )


def plain_title(title: str) -> str:
    """Return a title in a plain lower-case form, to compare it with names.

    Accents and joiners are removed. Compatibility characters such as full-width letters become
    ordinary ones (NFKD), and every dash or similar sign becomes an ASCII hyphen. Letters of other
    scripts that look like ASCII letters are not replaced.
    """
    return "".join(
        "-" if character in _HYPHENS or unicodedata.category(character) == "Pd" else character
        for character in unicodedata.normalize("NFKD", title).casefold()
        if not _is_mark(character) and character not in _JOINERS
    ).strip()


def _is_forbidden(character: str) -> bool:
    return character in _BLANKS or (
        unicodedata.category(character) in _FORBIDDEN and character not in _JOINERS
    )


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
