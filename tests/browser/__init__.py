"""What a visitor sees in Chromium, against a real server process."""
