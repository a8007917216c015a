"""What happens to channels and their messages."""
