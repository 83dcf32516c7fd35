"""Curvature of the loss: the Hessian and its parts, their ranks and traces, and the structure that classes give them."""
