"""One update of the policy: rows, losses, and the optimizer steps in all processes of a node."""
