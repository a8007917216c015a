"""Tests of accounts: signing in, own nodes, export and deletion."""
