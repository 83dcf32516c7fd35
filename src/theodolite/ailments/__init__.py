"""One file a way to fail; each file defines ``ailment``. The file name is the ailment's name."""
