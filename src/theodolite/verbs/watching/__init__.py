"""Looks repeated while a model trains."""
