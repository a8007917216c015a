"""The pages, their live updates, the read API, downloads, badges, and health checks."""
