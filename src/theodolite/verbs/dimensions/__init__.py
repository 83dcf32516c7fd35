"""How many directions data really use: all estimators side by side, and why they differ."""
