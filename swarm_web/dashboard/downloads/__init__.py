"""The data to download, streamed."""
