"""The lab reports that this site publishes: their format (`shape`), and their folders (`shelf`)."""
