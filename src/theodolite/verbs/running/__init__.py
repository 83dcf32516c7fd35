"""A training script as it is, watched without a changed line."""
