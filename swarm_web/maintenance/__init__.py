"""Maintenance by the operator: nodes are kept out, no round opens, and pages announce it."""
