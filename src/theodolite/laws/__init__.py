"""One folder a topic, one file a theorem; each file defines ``law``. The file name is the law's name."""
