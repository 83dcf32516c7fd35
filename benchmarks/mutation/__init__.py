"""Small errors put into theory on purpose, and what notices them."""
