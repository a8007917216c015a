"""The websocket edge for nodes; no models."""
