"""One file a question; each file defines ``instrument``. The file name is the instrument's name."""
