"""Figures for Plotly, as plain dicts; pure."""
