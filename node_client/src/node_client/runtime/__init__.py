"""A running node: training loop, exams, connection and display put together."""
