"""Do all workers of the data loader draw the same random numbers?

Exact: the data set has its own generator, every worker copies it, and no worker_init_fn reseeds it, so each augmentation comes
once from every worker.
"""

from theodolite.core.ailment import silent_error
from theodolite.core.subject import Subject
from theodolite.measure.dynamics._silent_facts import generator_shared


def static(subject: Subject) -> tuple[str, ...]:
    """The workers, and the generator that they share."""
    return generator_shared(getattr(subject.data, "source", None))


ailment = silent_error(
    question="Do the loader's workers draw different random numbers?",
    needs={"data"},
    fact="workers alike",
    severity="warning",
    says="All {0} workers of the loader copy one random generator ({1}): each draws the same augmentations.",
    remedy="seed the generator in each worker: DataLoader(..., worker_init_fn=...); or create it inside __getitem__",
    static=static,
)
