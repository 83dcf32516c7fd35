"""Checkpoints, weights, batches, targets of the command line, atomic files, partial results, worker processes."""
