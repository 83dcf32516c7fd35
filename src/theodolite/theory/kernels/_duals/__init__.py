"""Dual activations: what a nonlinearity does to covariances, in closed form and as series."""
