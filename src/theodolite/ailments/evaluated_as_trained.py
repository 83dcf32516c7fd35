"""Is the model evaluated in training mode?

Exact: passes without gradients, several in a row between two steps and on different batches, ran in training mode, where dropout
draws and the statistics of batch normalization change.
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
