"""Is the model evaluated in training mode?

Exact: between two steps, several forward passes without gradients, on different batches, ran in training mode. Dropout was then
active and the statistics of batch normalization changed.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the model evaluated in evaluation mode?",
    fact="evaluated as trained",
    severity="warning",
    says="The model was evaluated in training mode in {0} passes: {1}.",
    remedy="model.eval() before evaluation, model.train() after it",
    suggested={"mode": "eval"},
)
