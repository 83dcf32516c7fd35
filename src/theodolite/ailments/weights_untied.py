"""Were weights tied at the start, or are they meant to be, and are not?

Exact: two names had one tensor and have two now; or an embedding and the output layer are bit for bit the same at the start and
are two tensors that train apart; or the model's configuration says that they are tied.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Are tied weights still tied?",
    fact="weights untied",
    severity="warning",
    says="Weights that were tied are separate tensors now: {all}.",
    remedy="tie them again after loading or copying: model.head.weight = model.embedding.weight, before the optimizer is made",
)
