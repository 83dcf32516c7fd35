"""Is the model trained in evaluation mode?

Exact: at the steps every module was in evaluation mode, and some would do otherwise in training (dropout, batch normalization).
Who freezes normalization puts those layers into evaluation mode, not the whole model.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the model trained in training mode?",
    fact="trained as evaluated",
    severity="warning",
    says="The model was in evaluation mode at {0} of {1} steps: {2} do not do what they do in training.",
    remedy="model.train() before the loop, and again after every evaluation",
    suggested={"mode": "train"},
)
