"""Bayes: Bayesian deep linear networks."""
