"""Writes the pages of docs/site; run by docs/build.py. A file for each kind of page."""
