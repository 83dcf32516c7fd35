"""Do the replicas of the model on several processes differ?

Exact: the digests of the weights differ between ranks at the same step. Gradients are not averaged, or the ranks started from
different weights.
"""

from theodolite.core.ailment import silent_error

ailment = silent_error(
    question="Is the model the same on every rank?",
    fact="replicas differ",
    severity="critical",
    says="The weights of ranks {all} differ from those of rank 0 at the same step: each rank trains its own model.",
    remedy="call the DistributedDataParallel wrapper in the loop, not its .module; seed all ranks the same at the start",
)
