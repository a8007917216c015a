"""The wire protocol between a node and its coordinator.

Both sides use it, so it imports neither Django nor torch, and does no I/O. `messages/` defines the
messages, `codec.py` encodes and decodes them, and `errors.py` lists the reasons for refusals.
`docs/protocol.md` shows every message with an example.
"""
