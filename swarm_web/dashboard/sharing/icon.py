"""The site's icon for browsers that show no SVG: the logo on paper; pure."""

import io
from functools import cache

from PIL import Image, ImageDraw

from swarm_web.dashboard.sharing.cards import ACCENT, INK, LOGO_UNITS, PAPER, read_logo

_SIZES = (16, 32, 48)
# Drawn so much larger and then made smaller: Pillow draws without smoothing.
_UNIT = 12


@cache
def draw_icon() -> bytes:
    """Draw the icon in the sizes of tabs, task bars and shortcuts, as one ICO file."""
    side = LOGO_UNITS * _UNIT
    image = Image.new("RGBA", (side, side))
    draw = ImageDraw.Draw(image)
    # The dots are dark, and so are the tabs of some browsers.
    draw.rounded_rectangle((0, 0, side - 1, side - 1), radius=side // 6, fill=PAPER)
    for x, y, radius, is_one in read_logo():
        draw.circle((x * _UNIT, y * _UNIT), radius * _UNIT, fill=ACCENT if is_one else INK)
    buffer = io.BytesIO()
    image.save(buffer, "ICO", sizes=[(size, size) for size in _SIZES])
    return buffer.getvalue()
