"""Is the learning rate zero?

Exact: every group has had lr=0 since the first step. A schedule that reaches 0 later is reported as `schedule-ended`; the few
first steps of a warm-up are not reported.
"""

from theodolite.core.ailment import silent_error
from theodolite.core.subject import Subject


def static(subject: Subject) -> tuple[str, ...]:
    """All steps, where every group is at zero before the first one too."""
    groups = subject.optimizer.param_groups
    rates = [float(group.get("initial_lr", group.get("lr", 1.0))) for group in groups]
    return ("all", "all") if rates and max(rates) == 0 else ()


ailment = silent_error(
    question="Is the learning rate above zero?",
    needs={"model", "optimizer"},
    fact="step size zero",
    severity="critical",
    says="The learning rate was 0 at {0} of {1} steps: they change nothing.",
    remedy="pass lr to the optimizer, and let the schedule begin above zero",
    static=static,
)
