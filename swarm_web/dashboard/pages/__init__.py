"""The pages that a visitor reads; thin: each reads one report and renders it."""
