"""Quantized weights: a matrix of few bits, its scales and zeros are several tensors of a file and one weight here."""
