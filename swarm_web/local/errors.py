"""What keeps the launcher from going on."""


class LaunchError(Exception):
    """A start that failed; the text says what happened, why and what to do."""
