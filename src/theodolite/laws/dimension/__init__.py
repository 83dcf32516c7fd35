"""Dimension: intrinsic dimension of data and of objectives, manifolds."""
