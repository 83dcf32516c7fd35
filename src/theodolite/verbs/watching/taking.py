"""One look is taken: as much of its level as it may cost, and all of it where its loss looks wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.io.batches import Batch
from theodolite.verbs.watching.beside import Beside
from theodolite.verbs.watching.looks import LOOKS, Look, is_dear, looks_of, trouble_in
from theodolite.verbs.watching.records import THINNED, Record, thinned_note
from theodolite.verbs.watching.scene import Batching, Carried, Level, Scene
from theodolite.verbs.watching.thinning import Size, Thinning, doubt
from theodolite.verbs.watching.training import most_bytes
from theodolite.verbs.watching.watched_run import facts_beside


@dataclass
class Taken:
    """What one look read, what it could not and why, and its facts; how much that is, and the seconds that its level added."""

    size: Size = "whole"
    added: float = 0.0
    readings: list[tuple[str, Reading]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)

    def ask(self, look: Look, scene: Scene) -> None:
        """Its readings; whatever fails is told in a note, and training goes on."""
        try:
            self.readings += [(look.name, reading) for reading in look.read(scene)]
        except Exception as error:
            self.notes.append(f"{look.name}: {' '.join(str(error).split()) or type(error).__name__}")


@dataclass(frozen=True)
class Taking:
    """What the looks of a run are taken with; ``clock`` tells seconds."""

    beside: Beside
    carried: Carried
    level: Level
    batching: Batching
    held_out: Sequence[Batch]
    thinning: Thinning
    clock: Callable[[], float]

    def look(self, subject: Subject, records: Sequence[Record], step: int, *, a_step: float, whole: bool) -> Taken:
        """What a look at this subject reads after these records, where a step of training takes ``a_step`` seconds."""
        size: Size = "whole" if whole else self.thinning.size(a_step)
        training, model = self.beside.training(), self.beside.model
        scene = Scene(subject, self.carried, self.level, self.batching, training, bare=size == "loss")
        self.carried.note_memory(most_bytes(model))
        found = Taken()
        with self.beside.looking(training):
            found.ask(LOOKS[0], scene)
            if size != "whole" and self._is_in_doubt(scene, records, a_step):
                size = "whole"
                if scene.bare:
                    scene, found = replace(scene, bare=False, facts={}), Taken()
                    found.ask(LOOKS[0], scene)
            if self.carried.after_look == 0:
                self.carried.note_memory(most_bytes(model))
            found.facts, found.size = scene.facts, size
            trouble = trouble_in(scene, step)
            if trouble:
                found.notes.append(trouble)
            else:
                self._rest(scene, found)
        self.carried.after_look = most_bytes(model)
        if size != "whole" and not trouble:
            scene.facts[THINNED] = 2.0 if scene.bare else 1.0
            left = [look.name for look in looks_of(self.level) if is_dear(look, size)]
            found.notes.append(thinned_note(left, self.thinning.why(a_step)))
        return found

    def _rest(self, scene: Scene, found: Taken) -> None:
        """All but the loss."""
        scene.facts |= facts_beside(scene, self.held_out)
        scene.forget_gradient()
        for look in looks_of(self.level)[1:]:
            if is_dear(look, found.size):
                continue
            began = self.clock()
            found.ask(look, scene)
            if look.level != "cheap":
                found.added += self.clock() - began
            if look.name == "last-step":
                self.beside.release()
        if found.added:
            scene.give_back()

    def _is_in_doubt(self, scene: Scene, records: Sequence[Record], a_step: float) -> bool:
        """Whether this look's loss, or what the last ones said, buys a whole one on credit."""
        loss, lr = scene.facts.get("step_loss", math.nan), scene.subject.lr
        on_credit = doubt(records, loss, lr, standing=bool(self.beside.alarms.standing))
        return self.thinning.affords(on_credit, a_step)
