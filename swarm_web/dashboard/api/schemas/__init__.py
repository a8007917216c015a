"""What the read API answers with, and its OpenAPI document describes."""
