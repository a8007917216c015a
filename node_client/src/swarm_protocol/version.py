"""The versions of protocol and client, which a node sends in its hello and the server checks."""

# Increased whenever an older peer would misread a message; a mismatch ends the connection.
PROTOCOL_VERSION = 1

# The version of the client and of its distribution (pyproject.toml reads it from here).
CLIENT_VERSION = "0.2.0"


def parse_version(text: str) -> tuple[int, int, int]:
    """Return `(major, minor, patch)` of a version such as `1.2.3`.

    Raises ValueError if the text does not have three parts, separated by dots, or if `int` cannot
    read one of them.
    """
    major, minor, patch = text.split(".")
    return int(major), int(minor), int(patch)
