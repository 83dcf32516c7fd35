"""File formats of weights, one a file: each defines ``format``, which knows its own files by their first bytes."""
