"""Reports of the lab that this site publishes: their shape, and the shelf that they stand on."""
