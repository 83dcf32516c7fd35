"""What a survey is: the readings of one subject, its diagnosis, and the forms that people want them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from theodolite.core.question import Answer, Skipped
from theodolite.io.weights import owners_of
from theodolite.verbs._presented import PresentableAnswers, Sheet
from theodolite.verbs.diagnosis import Diagnosis

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.core.subject import Subject
    from theodolite.report.opening import Opening


@dataclass(frozen=True)
class Survey(PresentableAnswers):
    """The readings of one subject, as text, page, JSON or data frame.

    ``faults`` names the tensors of a checkpoint that could not be read, and why; ``unsurveyed`` lists the others without a
    reading, by reason. ``surveyed`` is the subject itself, ``judged`` its diagnosis.
    """

    kind: ClassVar[str] = "survey"

    subject: str
    answers: tuple[Answer, ...]
    skipped: tuple[Skipped, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    surveyed: Subject | None = field(default=None, repr=False, compare=False)
    unsurveyed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    judged: Diagnosis = field(default_factory=lambda: Diagnosis("", ()), repr=False, compare=False)

    @property
    def diagnosis(self) -> Diagnosis:
        """What is wrong with the subject, how that is known, and what to type; made with the survey."""
        return self.judged

    def sheet(self) -> Sheet:
        """The subject's name, its answers, what was skipped, and the facts beside them."""
        alone = self.surveyed is not None and self.surveyed.model is None  # a checkpoint, named by its path
        name = (PurePath(self.subject).name if alone else "") or self.subject
        facts = {"read from": self.subject, **self.facts} if name != self.subject else self.facts
        return Sheet(f"Survey of {name}", self.answers, self.skipped, facts)

    def __str__(self) -> str:
        from theodolite.report.text import as_text

        return as_text(self.table(detailed=False), width=120)

    def table(self, *, detailed: bool = True) -> RenderableType:
        """For the terminal, the diagnosis first: every reading, or one row a quantity."""
        from rich.console import Group

        from theodolite.report.text import layer_table

        rest = super().table(detailed=detailed)
        if not detailed:
            return rest
        layers = self.layers()
        return Group(self.diagnosis.table(), "", rest, *(["", layer_table(layers)] if layers else []))

    def layers(self) -> list[dict[str, str]]:
        """Every layer that has weights of its own: whole name, type and shape; of a checkpoint every tensor."""
        if self.surveyed is None:
            return []
        weights = self.surveyed.weights
        owners = owners_of(self.surveyed.model)
        found = {}
        for name, weight in weights.items():
            owner, shape = owners.get(name), " × ".join(map(str, weight.shape)) or "one number"
            layer, _, part = name.rpartition(".")
            kind = weight.kind if owner is None else type(owner).__name__
            if owner is None or part in ("weight", "in_proj_weight", "weight_ih_l0") or layer not in found:
                key = name if owner is None else layer
                found[key] = {"layer": key or name, "type": kind, "shape": shape}
        return list(found.values())

    def opening(self) -> Opening:
        """The diagnosis, and the network as one strip."""
        from theodolite.report.layer_strip import strip_of
        from theodolite.report.opening import Opening

        found = self.diagnosis
        strip = () if self.surveyed is None else strip_of(self.surveyed, self.readings, healthy=found.healthy)
        return Opening(found, strip)

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {
            "subject": self.subject,
            "diagnosis": self.diagnosis.document(),
            "facts": dict(self.facts),
            "layers": self.layers(),
            "readings": self.rows(),
            "skipped": [asdict(skipped) for skipped in self.skipped],
            "unsurveyed": {why: list(names) for why, names in self.unsurveyed.items()},
        }
