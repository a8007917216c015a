"""The read API under /api/."""
