"""The leaderboard and its comparisons, read by pages, the API and nodes."""
