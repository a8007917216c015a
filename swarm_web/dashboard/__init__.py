"""The pages, the live socket for browsers, the read API and the downloads; no models."""
