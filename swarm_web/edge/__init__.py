"""What stands between visitors and the apps: limits of requests, and caches of pages."""
