"""The lab reports that this site publishes: their format, and their folders."""
