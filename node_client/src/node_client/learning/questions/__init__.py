"""The questions that a node asks itself: new ones from a curriculum, old ones, held-out ones."""
