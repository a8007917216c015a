"""The pages for visitors: each view reads one report and renders it."""
