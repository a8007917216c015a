"""Which questions a node asks itself: new ones by a curriculum, old ones again, held-out ones."""
