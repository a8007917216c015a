"""The site: its settings, its web and websocket edges, and the apps below them."""

from swarm_web.celery import app as celery_app

__all__ = ["celery_app"]
