"""Learning one row at a time: update rules, passes over rows, streams, and what is recorded."""
