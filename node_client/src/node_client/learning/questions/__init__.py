"""Which questions a node asks itself: the season's, by a curriculum, again, or held-out ones."""
