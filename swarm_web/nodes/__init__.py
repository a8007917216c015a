"""Who may speak: accounts' nodes and their tokens."""
