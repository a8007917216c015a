"""The way to a coordinator: connection, requests, outboxes. No model."""
