"""Reports: the values that pages and the API show, read from the database, with texts; no HTML."""
