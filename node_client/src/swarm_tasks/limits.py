"""Limits of the time that scoring may take."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """No text is started after `until` (`time.monotonic`), and each may take `text_s` seconds."""

    until: float
    text_s: float

    @property
    def left_s(self) -> float:
        """The seconds until `until`; negative after it."""
        return self.until - time.monotonic()
