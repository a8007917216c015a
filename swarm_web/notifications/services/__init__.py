"""Changes of channels, and the queueing and sending of messages."""
