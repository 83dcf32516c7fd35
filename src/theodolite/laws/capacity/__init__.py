"""Capacity: how many points networks can hold, and networks that theorems write down."""
