"""Accounts of users: sign-in, their nodes, public profiles, data export, deletion."""
