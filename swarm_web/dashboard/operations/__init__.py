"""Health checks, metrics, and the client's package index."""
