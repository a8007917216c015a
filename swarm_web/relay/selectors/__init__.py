"""Queries of the relay for pages and handlers: the pool, the archive, and exchanges."""
