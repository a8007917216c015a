"""A running node: training loop, judge rounds, connection and display put together."""
