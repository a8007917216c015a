"""The browsers' socket at /ws/live/."""
