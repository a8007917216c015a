"""How long a node waits between attempts to reconnect.

A node waits at most `return_within` seconds (a field of its latest welcome) between two attempts.
It waits at most MAX_PAUSE_S instead if it lost the connection at least HURRY_S ago, or if the next
round is known to open more than SOON_S from now. If the coordinator refuses with `retry_after`, the
node waits for that time, but at most MAX_WAIT_S. The judge relies on these limits when it moves
openings and deadlines after an outage.
"""

# The default of `return_within`. All values are in seconds.
RETURN_WITHIN_S = 5.0
SOON_S = 60.0
HURRY_S = 600.0
MAX_PAUSE_S = 60.0
# The longest wait that a coordinator may ask for.
MAX_WAIT_S = 600.0
