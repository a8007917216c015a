"""What each message of a node does: one function a message, which returns the reply.

Refusals are raised as RefusedError; `gateway.answering` turns them into error frames. Nothing here
knows of sockets.
"""
