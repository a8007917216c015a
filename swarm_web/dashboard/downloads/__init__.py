"""The data to take away, streamed."""
