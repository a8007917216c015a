"""Tasks: identity, allow-list, verifier child and quality gate."""
