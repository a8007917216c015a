"""The handlers of node messages: one function per message type, which returns the reply.

Refusals are raised as RefusedError; `gateway.answering` turns them into error frames. Handlers do
not access sockets.
"""
