"""Kernels of networks: NNGP and NTK, what they say of training, and the theory of kernels they rest on."""
