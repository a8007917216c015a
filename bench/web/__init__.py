"""Benchmark of pages, downloads and live updates of a site with five million answers."""
