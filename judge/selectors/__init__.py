"""Reads of the judge, by subject: seasons, rounds, scores, and the public record."""
