"""How soon a node is back after it lost its coordinator; the judge counts on it.

While a round is open, or opens within SOON_S, a node pauses for at most `return_within` seconds of
its welcome between two attempts. It does so for HURRY_S after the loss; later, or while the next
round is far off, its pauses grow to MAX_PAUSE_S. A coordinator that is there to say when the
node should come back (`retry_after`) decides instead, up to MAX_WAIT_S.
"""

# What `return_within` is unless the coordinator says otherwise.
RETURN_WITHIN_S = 5.0
SOON_S = 60.0
HURRY_S = 600.0
MAX_PAUSE_S = 60.0
# The longest wait that a coordinator may ask for.
MAX_WAIT_S = 600.0
