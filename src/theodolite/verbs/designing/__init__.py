"""Before training: what theory advises, and random networks of that size beside it."""
