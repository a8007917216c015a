"""Browser tests: pages in Chromium, served by a real server process."""
