"""Are weights that should be tied separate tensors?

Exact: two names shared one tensor and now have two; or an embedding and the output layer are identical at the start but are two
tensors that train separately; or the model's configuration says that they are tied.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Are tied weights still tied?",
    fact="weights untied",
    severity="warning",
    says="Weights that were tied are separate tensors now: {all}.",
    remedy="tie them again after loading or copying: model.head.weight = model.embedding.weight, before creating the optimizer",
)
