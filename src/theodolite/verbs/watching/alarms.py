"""What is said while a run goes wrong: each finding once, when it appears or gets worse."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from theodolite.core.ailment import SEVERITIES, Finding, Severity
from theodolite.core.checks import InputError

LOG = logging.getLogger("theodolite")
LEVEL = {"critical": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}


class Stopped(RuntimeError):  # noqa: N818  a decision of the user, not an error
    """Raised out of a watch with ``stop_on``: the finding that training was stopped for is ``finding``."""

    def __init__(self, line: str, finding: Finding) -> None:
        super().__init__(line)
        self.finding = finding


Listener = Callable[[int, Finding], None]


@dataclass
class Alarms:
    """Which findings stand, so that each is told once when it appears or gets worse."""

    on_finding: Listener | None = None
    stop_on: Severity | None = None
    standing: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.stop_on is not None and self.stop_on not in SEVERITIES:
            raise InputError(f"expected stop_on to be one of {', '.join(SEVERITIES)}, got {self.stop_on!r}")

    def new_lines(self, step: int, found: Sequence[Finding]) -> list[str]:
        """One line for each finding that is new or has got worse; the logger and the listener hear it."""
        lines = []
        for finding in found:
            before = self.standing.get(finding.name)
            if before is not None and SEVERITIES.index(before.severity) <= SEVERITIES.index(finding.severity):
                continue
            line = line_of(step, finding)
            lines.append(line)
            LOG.log(LEVEL[finding.severity], line)
            if self.on_finding is not None:
                self.on_finding(step, finding)
        self.standing = {finding.name: finding for finding in found}
        return lines

    def stop(self, step: int) -> None:
        """Raise where a finding stands that training is to be stopped for."""
        for finding in self.standing.values():
            if self.stop_on and SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.stop_on):
                raise Stopped(line_of(step, finding), finding)


def line_of(step: int, finding: Finding) -> str:
    """One line for a log.

    >>> line_of(40, Finding(name="step-too-large", severity="critical", says="the loss rose.", remedy="lr at most 0.013"))
    'step 40: step too large: the loss rose; lr at most 0.013'
    """
    return f"step {step}: {finding.name.replace('-', ' ')}: {finding.says.rstrip('.')}; {finding.remedy}"
