"""Descent: which steps are stable, how fast they are, what noise leaves, and what happens beyond the edge."""
