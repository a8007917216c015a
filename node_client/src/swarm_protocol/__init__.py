"""The wire protocol between a node and its coordinator.

Used by both sides, so it imports neither Django nor torch, and does no I/O.
Read `messages/` for what may be said, `codec.py` for how it is framed and `errors.py` for
how it is refused. `docs/protocol.md` shows every message with an example.
"""
