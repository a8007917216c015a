"""Where connections enter: pages to Django, nodes and browsers to their sockets.

Serve it as `swarm_web.local.commands.serve_web` does: by uvicorn with the sans-I/O websockets. It
must leave proxies' headers alone: TRUSTED_PROXIES decides which of them are believed.
"""

import gc
import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "swarm_web.settings")
# Only here: what is served is asked for by many, a worker's tasks come one after another.
os.environ.setdefault("DATABASE_POOL", "16")

# WhiteNoise opens files with plain iterators; they are small, hashed and cached by browsers.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

# Loads the apps, which the consumers' modules need when they are imported.
pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path, reverse  # noqa: E402

from swarm_web.dashboard.live.socket import OriginGate, live_socket  # noqa: E402
from swarm_web.dashboard.pages import home  # noqa: E402
from swarm_web.edge.body_limit import BodyLimit  # noqa: E402
from swarm_web.edge.page_cache import PageCache  # noqa: E402
from swarm_web.gateway.auth import TokenGate  # noqa: E402
from swarm_web.gateway.connection import serve_node  # noqa: E402
from swarm_web.gateway.denial import deny_unknown_path  # noqa: E402
from swarm_web.gateway.pulse import lifespan  # noqa: E402

# Django's types know views, not ASGI applications.
sockets = URLRouter(
    [
        # Nodes are no browsers: they send no Origin, and a token instead of a cookie.
        path("ws/node/", TokenGate(serve_node)),  # type: ignore[arg-type]
        path("ws/live/", OriginGate(live_socket)),  # type: ignore[arg-type]
        re_path(r"", deny_unknown_path),  # type: ignore[arg-type]
    ]
)
kept_pages = PageCache(
    pages,
    seconds=settings.PAGE_CACHE_SECONDS,
    marks={home.COOKIE: reverse("home")},
)
requests = BodyLimit(kept_pages, most_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
application = ProtocolTypeRouter({"http": requests, "websocket": sockets, "lifespan": lifespan})

# What is loaded stays until the process ends: the collector need not look through it again. It took
# some 100 ms each time, in which nobody was served; now 10 to 20 ms.
gc.collect()
gc.freeze()
# What thousands of connections and the pool hold is alive, and looked through each time: seldom.
gc.set_threshold(20_000, 50, 100)
