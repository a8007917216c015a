"""Commands that look at a node, a site or a round without training."""
