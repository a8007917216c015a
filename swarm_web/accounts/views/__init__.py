"""The account pages and owners' profiles."""
