"""The ASGI application: routes pages to Django, and nodes and browsers to their sockets.

Serve it as `swarm_web.local.commands.serve_web` does: with uvicorn and its sans-I/O websockets.
uvicorn must not process proxy headers, because the site reads them itself: the setting
TRUSTED_PROXIES is the number of proxies that it trusts.
"""

import gc
import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "swarm_web.settings")
# Only set here: web requests are concurrent, while a worker runs its tasks one after another.
os.environ.setdefault("DATABASE_POOL", "16")

# WhiteNoise streams files from synchronous iterators; they are small, hashed and cached by
# browsers.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

# Loads the apps, which the modules imported below need.
pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from swarm_web.dashboard.live.socket import OriginGate, live_socket  # noqa: E402
from swarm_web.edge.body_limit import BodyLimit  # noqa: E402
from swarm_web.edge.page_cache import PageCache  # noqa: E402
from swarm_web.gateway.auth import TokenGate  # noqa: E402
from swarm_web.gateway.connection import serve_node  # noqa: E402
from swarm_web.gateway.denial import deny_unknown_path  # noqa: E402
from swarm_web.gateway.pulse import lifespan  # noqa: E402

# Django's types allow views, not ASGI applications.
sockets = URLRouter(
    [
        # Nodes are not browsers: they send a token instead of an Origin and cookies.
        path("ws/node/", TokenGate(serve_node)),  # type: ignore[arg-type]
        path("ws/live/", OriginGate(live_socket)),  # type: ignore[arg-type]
        re_path(r"", deny_unknown_path),  # type: ignore[arg-type]
    ]
)
kept_pages = PageCache(pages, seconds=settings.PAGE_CACHE_SECONDS)
requests = BodyLimit(kept_pages, max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
application = ProtocolTypeRouter({"http": requests, "websocket": sockets, "lifespan": lifespan})

# Loaded objects exist until the process ends, so exclude them from garbage collection. It blocked
# the event loop for about 100 ms each time, and now takes 10 to 20 ms.
gc.collect()
gc.freeze()
# The objects of thousands of connections and the pool are long-lived and scanned at each
# collection, so collect rarely.
gc.set_threshold(20_000, 50, 100)
