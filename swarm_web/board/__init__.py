"""The leaderboard and what it is compared with, read by pages, API and nodes alike."""
