"""What pages and API tell: read from the database, put into words and figures; no HTTP."""
