"""People's accounts: signing in, their nodes, what they show of themselves, leaving."""
