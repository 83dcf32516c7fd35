"""Activations that torch has not, a file each; ``Activation`` finds them by the file's name."""
