"""What several instruments share: one pass over the weights, classes, layers, samples."""
