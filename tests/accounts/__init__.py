"""Accounts: signing in, their nodes, leaving."""
