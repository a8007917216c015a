"""The operations of the read API, a module for each thing that it tells of."""
