"""Maintenance: how it begins and ends, and what nodes, pages and the judge make of it."""
