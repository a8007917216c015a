"""The watch over the nodes, kept in Redis from one look to the next.

When Redis loses it, the watch begins anew, and a silence is told later.
"""

from datetime import datetime

import msgspec

from swarm_web import heartbeat
from swarm_web.notifications.rules import Watch, go_on_watching
from swarm_web.store import sync_redis

_KEY = "notifications:watch"


def look(*, now: datetime) -> Watch:
    """Return the watch as it stands now, and keep it."""
    kept = sync_redis().get(_KEY)
    before = msgspec.json.decode(kept, type=Watch) if kept else None
    watch = go_on_watching(before, now=now, web_silence=heartbeat.web_silence())
    sync_redis().set(_KEY, msgspec.json.encode(watch))
    return watch
