"""Services that change channels, and that queue and send messages."""
