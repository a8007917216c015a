"""Tests of maintenance: how it starts and ends, and its effects on nodes, pages and the judge."""
