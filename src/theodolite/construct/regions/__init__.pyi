from .folding import sawtooth as sawtooth
