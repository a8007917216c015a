"""The layer between visitors and the apps: request limits and page caches."""
