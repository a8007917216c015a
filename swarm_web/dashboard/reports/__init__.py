"""Reports: the values and texts that pages and the API show, read from the database; no HTML."""
