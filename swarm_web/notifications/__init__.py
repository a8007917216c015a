"""Messages to owners: a node went silent, a round was scored, a newer client is required."""
