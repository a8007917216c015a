"""What every app of the site stands on: stores, messages between processes, counters, errors."""
