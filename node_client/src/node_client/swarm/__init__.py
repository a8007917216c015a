"""Talks to a coordinator: handshake, connection, requests, outboxes. Uses no model."""
