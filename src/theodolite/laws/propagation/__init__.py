"""Signals at initialization: how norms and angles travel through random layers, and which variances keep them."""
