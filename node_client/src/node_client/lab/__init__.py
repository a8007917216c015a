"""Controlled experiments: whole swarms on one machine, with the client's own trainer."""
