"""Figures for Plotly, as plain dicts; the modules do not query the database."""
