"""Do the replicas of the model on several processes differ?

Exact: the digests of the weights differ between ranks at the same step: gradients are not averaged, or ranks began from different
weights.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Are the replicas of the model alike?",
    fact="replicas differ",
    severity="critical",
    says="The weights of ranks {all} differ from those of rank 0 at the same step: each rank trains a model of its own.",
    remedy="call the DistributedDataParallel wrapper in the loop, not its .module; seed all ranks alike before the model is made",
)
