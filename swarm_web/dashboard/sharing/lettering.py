"""The typeface of badges and cards: Inter, under the SIL Open Font License, bundled."""

from functools import cache
from pathlib import Path

from PIL import ImageFont

_FOLDER = Path(__file__).parent / "fonts"
_FILES = {"regular": "inter-5.3.0-regular.ttf", "bold": "inter-5.3.0-bold.ttf"}


@cache
def load_font(weight: str, px: int) -> ImageFont.FreeTypeFont:
    """Return the typeface in a weight (regular or bold) and size."""
    return ImageFont.truetype(_FOLDER / _FILES[weight], px)


def measure(text: str, px: int, *, weight: str = "regular") -> float:
    """Return how many pixels a text takes in a line."""
    return float(load_font(weight, px).getlength(text))


def fit(text: str, *, weight: str, px: int, least: int, width: float) -> ImageFont.FreeTypeFont:
    """Return the largest size, from `px` down to `least`, in which a text fits a width."""
    sizes = range(px, least - 1, -2)
    fitting = (size for size in sizes if measure(text, size, weight=weight) <= width)
    return load_font(weight, next(fitting, least))


def shorten(text: str, font: ImageFont.FreeTypeFont, *, width: float) -> str:
    """Return a text, or as much of its beginning as fits a width."""
    if font.getlength(text) <= width:
        return text
    lengths = range(len(text), 0, -1)
    cut = (text[:length] + "…" for length in lengths)
    return next((short for short in cut if font.getlength(short) <= width), "…")
