"""Capacity: memorization by written-down networks, corrective networks, entropy and widths."""
