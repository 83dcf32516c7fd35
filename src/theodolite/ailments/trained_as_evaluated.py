"""Is the model trained in evaluation mode?

Exact: every module was in evaluation mode during the steps, and some of them behave differently in training (dropout, batch
normalization). To freeze normalization, people put those layers into evaluation mode, not the whole model.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the model trained in training mode?",
    fact="trained as evaluated",
    severity="warning",
    says="The model was in evaluation mode at {0} of {1} steps: {2} did not work as in training.",
    remedy="model.train() before the loop, and again after every evaluation",
    suggested={"mode": "train"},
)
