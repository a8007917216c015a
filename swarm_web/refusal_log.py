"""What the log says of requests that were refused: one line now and then, at the level INFO.

Anybody can send requests that are refused, with as long an address as the server reads. Django
logs some of them with a traceback, uvicorn as warnings or errors; none is a fault of the site.
"""

import logging

from swarm_web.spaced_log import SpacedFilter, first_line

_LONGEST_LINE = 200
_UVICORN = {
    # Told of every handshake that is answered by HTTP, as `swarm_web.gateway.denial` does
    # (https://github.com/Kludex/uvicorn/pull/3138).
    "ASGI callable returned without completing handshake.": "A websocket handshake was refused.",
    "Invalid HTTP request received.": "What came is no HTTP request.",
    "Unsupported upgrade request.": "A protocol was asked for that is not spoken here.",
}


class RefusalFilter(SpacedFilter):
    """Turn what is logged of a refused request into one line at the level INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written: refusals only where INFO is."""
        if not _is_refusal(record):
            return True
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        return logging.root.isEnabledFor(logging.INFO) and super().filter(record)

    def shorten(self, record: logging.LogRecord) -> str:
        """Say what was refused."""
        said = record.getMessage()
        return first_line(_UVICORN.get(said, said))[:_LONGEST_LINE]


def _is_refusal(record: logging.LogRecord) -> bool:
    """Tell whether Django answered 4xx, which it notes on the record, or uvicorn refused."""
    if record.name == "uvicorn.error":
        return record.msg in _UVICORN
    return 400 <= getattr(record, "status_code", 500) < 500
