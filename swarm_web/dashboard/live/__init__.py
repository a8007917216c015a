"""The live updates of pages, over the socket at /ws/live/."""
