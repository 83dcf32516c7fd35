"""Spectra of weights and features: noise and what stands out of it, power laws, and how products inherit them."""
