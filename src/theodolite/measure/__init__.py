"""MEASURE: models and data go in, numbers with errors come out; nothing here knows what theory expects."""
