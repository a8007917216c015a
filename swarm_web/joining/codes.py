"""User codes, as RFC 8628, section 6.1 recommends; no I/O."""

import re
from random import Random

# No vowels, so that no code is a word; no characters that look alike.
_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8


def draw_user_code(random: Random) -> str:
    """Return a random code of 8 consonants (20^8 possible codes), such as `BCDFGHJK`."""
    return "".join(random.choices(_ALPHABET, k=_LENGTH))


def read_user_code(typed: str) -> str:
    """Return a typed code in its stored form: capitals and digits only, cut to 16 characters."""
    return re.sub(r"[^A-Z0-9]", "", typed.upper())[: 2 * _LENGTH]


def show_user_code(code: str) -> str:
    """Return a code for display, such as `BCDF-GHJK`."""
    return f"{code[:4]}-{code[4:]}"
