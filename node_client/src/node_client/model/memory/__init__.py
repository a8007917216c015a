"""How much memory training takes, how much is free, and what to do when it runs out."""
