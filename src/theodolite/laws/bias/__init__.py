"""Bias: which solution training finds: diagonal nets, max margin, multiplicative updates, rotation invariance."""
