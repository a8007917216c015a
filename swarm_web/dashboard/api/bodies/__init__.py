"""The bodies of the read API, made from the same reports as the pages."""
