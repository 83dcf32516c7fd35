"""Regions: linear regions of piecewise linear networks."""
