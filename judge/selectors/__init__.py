"""The judge's read-only queries, by subject: seasons, rounds, scores, and the public record."""
