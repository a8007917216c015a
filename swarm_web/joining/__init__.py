"""How a client gets a token: a person approves a code on a page of the site (RFC 8628)."""
