"""Reports: what pages and the API show, read from the database and put into words; no HTML."""
