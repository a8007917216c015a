"""Tests of pages, read API, downloads, health checks and the live socket."""
