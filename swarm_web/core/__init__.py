"""Shared code of all apps of the site: stores, messages between processes, counters, errors."""
