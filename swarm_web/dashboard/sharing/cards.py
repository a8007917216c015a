"""Draws preview cards of 1200 by 630 pixels as PNG, and the site's icon as ICO.

A preview card is the picture that other sites show with a link to a page. The bundled typeface is
Inter, under the SIL Open Font License. Pillow draws shapes without antialiasing, so the pictures
are drawn enlarged and then scaled down.
"""

import io
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.text import capfirst
from PIL import Image, ImageDraw, ImageFont

from swarm_web.dashboard.charts.parts import STYLES
from swarm_web.dashboard.sharing.facts import (
    NodeFacts,
    SiteFacts,
    describe_site,
    write_rank,
)
from swarm_web.dashboard.templatetags.figures import write_interval, write_share

_FOLDER = Path(__file__).parent / "fonts"
_FILES = {"regular": "inter-5.3.0-regular.ttf", "bold": "inter-5.3.0-bold.ttf"}
WIDTH, HEIGHT = 1200, 630
# The colours of the pages' light theme.
PAPER, INK, _QUIET, _LINE, ACCENT = "#fbfaf7", "#1b1f24", "#5d6670", "#e3e0d8", "#2f5fd0"
_SCALE = 2
_COLOURS = 96
_MARGIN = 72
_CONTENT_WIDTH = WIDTH - 2 * _MARGIN
_CIRCLE = re.compile(r'<circle (class="one" )?cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"')
LOGO_UNITS = 32
# Cards are requested in bursts, when a link is shared.
_CACHE_SIZE = 64
Point = tuple[float, float]
_SIZES = (16, 32, 48)
# The icon's scale while it is drawn.
_ICON_SCALE = 12


# ---- the typeface


@cache
def load_font(weight: str, px: int) -> ImageFont.FreeTypeFont:
    """Return the typeface in a weight (regular or bold) and a size in pixels."""
    return ImageFont.truetype(_FOLDER / _FILES[weight], px)


def measure(text: str, px: int, *, weight: str = "regular") -> float:
    """Return the width of a line of text in pixels."""
    return float(load_font(weight, px).getlength(text))


def fit_font(
    text: str, *, weight: str, px: int, min_px: int, width: float
) -> ImageFont.FreeTypeFont:
    """Return the font in the largest of the sizes `px`, `px` - 2, … at which a text fits a width.

    If no size down to `min_px` fits, the size is `min_px`.
    """
    sizes = range(px, min_px - 1, -2)
    fitting = (size for size in sizes if measure(text, size, weight=weight) <= width)
    return load_font(weight, next(fitting, min_px))


def shorten(text: str, font: ImageFont.FreeTypeFont, *, width: float) -> str:
    """Return `text`, shortened with an ellipsis if it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    lengths = range(len(text), 0, -1)
    cut = (text[:length] + "…" for length in lengths)
    return next((short for short in cut if font.getlength(short) <= width), "…")


# ---- cards


class Canvas:
    """A card to draw on; positions and lengths are in pixels of the finished card.

    While it is drawn, the card is _SCALE times as large.
    """

    def __init__(self) -> None:
        self.image = Image.new("RGB", (WIDTH * _SCALE, HEIGHT * _SCALE), PAPER)
        self._draw = ImageDraw.Draw(self.image)

    def write(
        self,
        at: Point,
        text: str,
        *,
        px: int,
        colour: str = INK,
        weight: str = "regular",
        width: float = _CONTENT_WIDTH,
        anchor: str = "ls",
    ) -> float:
        """Write a line of text, and return the x at which it ends.

        `at` is the position of the text's `anchor`, which is named as in Pillow. By default this is
        the left end of the baseline. If the text is wider than `width`, it is made smaller, down to
        half its size. If it is still too wide, it is shortened. The returned x is right only if the
        anchor is on the left.
        """
        font = fit_font(
            text, weight=weight, px=px * _SCALE, min_px=px * _SCALE // 2, width=width * _SCALE
        )
        shown = shorten(text, font, width=width * _SCALE)
        self._draw.text(_enlarge(at), shown, font=font, fill=colour, anchor=anchor)
        return at[0] + font.getlength(shown) / _SCALE

    def line(self, points: Sequence[Point], *, colour: str, width: int) -> None:
        """Draw a line through points, `width` pixels wide."""
        path = [_enlarge(point) for point in points]
        self._draw.line(path, fill=colour, width=width * _SCALE, joint="curve")

    def dot(self, at: Point, radius: float, *, colour: str) -> None:
        """Draw a filled circle with its centre at `at`."""
        self._draw.circle(_enlarge(at), radius * _SCALE, fill=colour)

    def bar(self, start: Point, end: Point, *, colour: str) -> None:
        """Fill a rectangle with round ends, from its upper left corner to the lower right one."""
        radius = (end[1] - start[1]) / 2 * _SCALE
        self._draw.rounded_rectangle((*_enlarge(start), *_enlarge(end)), radius, fill=colour)

    def finish(self) -> bytes:
        """Return the card as PNG."""
        small = self.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        # Few pixels have the accent colour: the default method would mix it with its neighbours.
        quantized = small.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
        quantized.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


@lru_cache(maxsize=_CACHE_SIZE)
def draw_node_card(facts: NodeFacts, *, site: str) -> bytes:
    """Return a node's card as PNG: its score with interval and n, its rank, and its last rounds.

    `site` is the site's name. Without a score, the card says that the node is not judged yet.
    """
    canvas = Canvas()
    colour = STYLES[facts.arm][0]
    _draw_head(canvas, site)
    canvas.write((_MARGIN, 232), facts.name, px=76, weight="bold")
    canvas.dot((_MARGIN + 10, 281), 10, colour=colour)
    model = f"{facts.arm} · {facts.model}" if facts.model else facts.arm
    canvas.write((_MARGIN + 34, 292), model, px=30, colour=_QUIET, width=_CONTENT_WIDTH - 34)
    if facts.score is None or facts.interval is None:
        canvas.write((_MARGIN, 468), "Not judged yet", px=64, colour=_QUIET)
        return canvas.finish()
    end = canvas.write((_MARGIN, 468), write_share(facts.score), px=128, weight="bold")
    interval = f"judge score, 95 % interval {write_interval(*facts.interval)}, n = {facts.n}"
    canvas.write((end + 32, 416), capfirst(write_rank(facts)), px=38, weight="bold")
    canvas.write(
        (end + 32, 464), interval, px=28, colour=_QUIET, width=_MARGIN + _CONTENT_WIDTH - end - 32
    )
    _draw_interval(canvas, facts.score, facts.interval, colour=colour)
    _draw_recent(canvas, facts.recent, colour=colour)
    return canvas.finish()


@lru_cache(maxsize=_CACHE_SIZE)
def draw_site_card(facts: SiteFacts) -> bytes:
    """Return the site's card as PNG: its purpose, its state, and the leaders."""
    canvas = Canvas()
    _draw_logo(canvas, (WIDTH - _MARGIN - 240, 64), 240)
    canvas.write((_MARGIN, 170), facts.name, px=92, weight="bold", width=_CONTENT_WIDTH - 280)
    canvas.write((_MARGIN, 240), "A public swarm: small language models", px=34, colour=_QUIET)
    canvas.write((_MARGIN, 284), "that learn from each other's rollouts", px=34, colour=_QUIET)
    canvas.line([(_MARGIN, 332), (WIDTH - _MARGIN, 332)], colour=_LINE, width=2)
    _draw_leaders(canvas, facts)
    if not facts.leaders:
        canvas.write((_MARGIN, 430), "Nobody is ranked yet: join", px=44, weight="bold")
    parts = [facts.season, describe_site(facts)]
    canvas.write((_MARGIN, 582), " · ".join(filter(None, parts)), px=28, colour=_QUIET)
    return canvas.finish()


# ---- parts of cards


def _draw_head(canvas: Canvas, site: str) -> None:
    _draw_logo(canvas, (_MARGIN, 64), 56)
    canvas.write((_MARGIN + 74, 104), site, px=34, weight="bold", width=_CONTENT_WIDTH - 74)


def _draw_logo(canvas: Canvas, corner: Point, size: float) -> None:
    unit = size / LOGO_UNITS
    for x, y, radius, is_one in read_logo():
        point = (corner[0] + x * unit, corner[1] + y * unit)
        canvas.dot(point, radius * unit, colour=ACCENT if is_one else INK)


@cache
def read_logo() -> list[tuple[float, float, float, bool]]:
    """Return the circles of the site's logo as (x, y, radius, whether it is highlighted).

    The logo is LOGO_UNITS wide and high.
    """
    drawing = (settings.BASE_DIR / "static" / "img" / "logo.svg").read_text()
    return [
        (float(x), float(y), float(radius), bool(one))
        for one, x, y, radius in _CIRCLE.findall(drawing)
    ]


def _draw_interval(canvas: Canvas, score: float, interval: Point, *, colour: str) -> None:
    """Draw a score and its interval on a line from 0 to 1."""
    left, right, middle = _MARGIN, 560.0, 540.0

    def place(value: float) -> float:
        return left + value * (right - left)

    canvas.bar((left, middle - 3), (right, middle + 3), colour=_LINE)
    canvas.bar((place(interval[0]), middle - 6), (place(interval[1]), middle + 6), colour=colour)
    canvas.dot((place(score), middle), 15, colour=PAPER)
    canvas.dot((place(score), middle), 11, colour=colour)
    canvas.write((left, 588), "0", px=22, colour=_QUIET)
    canvas.write((right, 588), "1", px=22, colour=_QUIET, anchor="rs")


def _draw_recent(canvas: Canvas, recent: Sequence[float], *, colour: str) -> None:
    """Draw a node's last round scores, if at least two, as a line on a scale from 0 to 1."""
    if len(recent) < 2:
        return
    left, right, top, bottom = 660.0, WIDTH - _MARGIN - 12.0, 496.0, 552.0
    step = (right - left) / (len(recent) - 1)
    points = [(left + i * step, bottom - value * (bottom - top)) for i, value in enumerate(recent)]
    canvas.line([(left, bottom), (right, bottom)], colour=_LINE, width=2)
    canvas.line(points, colour=colour, width=4)
    canvas.dot(points[-1], 9, colour=colour)
    canvas.write((left, 588), f"last {len(recent)} scored rounds", px=22, colour=_QUIET)


def _draw_leaders(canvas: Canvas, facts: SiteFacts) -> None:
    """List the best nodes with their scores and intervals."""
    right = WIDTH - _MARGIN
    if facts.leaders:
        canvas.write((_MARGIN, 370), "In front", px=24, colour=_QUIET)
        caption = "95 % interval and judge score"
        canvas.write((right, 370), caption, px=24, colour=_QUIET, anchor="rs")
    for place, (name, score, interval) in enumerate(facts.leaders):
        base = 420 + 50 * place
        canvas.write((_MARGIN, base), name, px=36, weight="bold", width=_CONTENT_WIDTH - 330)
        canvas.write((right, base), write_share(score), px=36, weight="bold", anchor="rs")
        quiet = write_interval(*interval)
        canvas.write((right - 110, base), quiet, px=28, colour=_QUIET, anchor="rs")


def _enlarge(point: Point) -> Point:
    return point[0] * _SCALE, point[1] * _SCALE


# ---- the icon


@cache
def draw_icon() -> bytes:
    """Return the site's icon as an ICO file, in the sizes of tabs, task bars and shortcuts."""
    side = LOGO_UNITS * _ICON_SCALE
    image = Image.new("RGBA", (side, side))
    draw = ImageDraw.Draw(image)
    # The dots are dark, like the tabs of some browsers.
    draw.rounded_rectangle((0, 0, side - 1, side - 1), radius=side // 6, fill=PAPER)
    for x, y, radius, is_one in read_logo():
        draw.circle(
            (x * _ICON_SCALE, y * _ICON_SCALE), radius * _ICON_SCALE, fill=ACCENT if is_one else INK
        )
    buffer = io.BytesIO()
    image.save(buffer, "ICO", sizes=[(size, size) for size in _SIZES])
    return buffer.getvalue()
