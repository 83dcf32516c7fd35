"""PREDICT: numbers go in, numbers come out; nothing here ever sees a model or a measurement."""
