"""The downloads of the site's data, which are streamed."""
