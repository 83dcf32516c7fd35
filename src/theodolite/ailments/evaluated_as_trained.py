"""Is the model evaluated in training mode?

Exact: forward passes without gradients ran in training mode, with dropout active and batch statistics changing: several
different batches between two steps, or the same inputs again at a later step. Or the model calls a dropout function that
stays active in evaluation mode.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the model evaluated in evaluation mode?",
    fact="evaluated as trained",
    severity="warning",
    says="The model was still in training mode in {0} evaluation passes: {1}.",
    remedy="model.eval() before evaluation, model.train() after it; in forward(), F.dropout(x, p, training=self.training)",
    suggested={"mode": "eval"},
)
