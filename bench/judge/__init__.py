"""A judge round of a thousand nodes: received, graded, closed and ranked."""
