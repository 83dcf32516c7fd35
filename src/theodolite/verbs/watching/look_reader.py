"""One look is taken: as much of its level as it may cost, and all of it where its loss looks wrong."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.io.batches import Batch
from theodolite.verbs.watching.attachments import Attachments
from theodolite.verbs.watching.look_context import Batching, Carried, Level, LookContext
from theodolite.verbs.watching.looks import LOOKS, Look, is_dear, looks_of, trouble_in
from theodolite.verbs.watching.records import THINNED, Record, thinned_note
from theodolite.verbs.watching.thinning import Size, Thinning, doubt
from theodolite.verbs.watching.training import most_bytes
from theodolite.verbs.watching.watched_run import facts_beside


@dataclass
class LookResult:
    """What one look read, what it could not and why, and its facts; how much that is, and the seconds that its level added."""

    size: Size = "whole"
    added: float = 0.0
    readings: list[tuple[str, Reading]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)

    def ask(self, look: Look, context: LookContext) -> None:
        """Its readings; whatever fails is told in a note, and training goes on."""
        try:
            self.readings += [(look.name, reading) for reading in look.read(context)]
        except Exception as error:
            self.notes.append(f"{look.name}: {' '.join(str(error).split()) or type(error).__name__}")


@dataclass(frozen=True)
class LookReader:
    """What the looks of a run are taken with; ``clock`` tells seconds."""

    attached: Attachments
    carried: Carried
    level: Level
    batching: Batching
    held_out: Sequence[Batch]
    thinning: Thinning
    clock: Callable[[], float]

    def look(
        self, subject: Subject, records: Sequence[Record], step: int, *, a_step: float, whole: bool, room: float
    ) -> LookResult:
        """What a look at this subject reads after these records, where a step of training takes ``a_step`` seconds.

        ``room`` are the seconds that a budget leaves for it.
        """
        size: Size = "whole" if whole else self.thinning.size(a_step, room)
        training, model = self.attached.training(), self.attached.model
        self.attached.errors.compare(training.before)
        context = LookContext(subject, self.carried, self.level, self.batching, training, bare=size == "loss")
        self.carried.note_memory(most_bytes(model))
        found = LookResult()
        with self.attached.looking(training):
            found.ask(LOOKS[0], context)
            if size != "whole" and math.isinf(room) and self._is_in_doubt(context, records, a_step):
                size = "whole"
                if context.bare:
                    context, found = replace(context, bare=False, facts={}), LookResult()
                    found.ask(LOOKS[0], context)
            if self.carried.after_look == 0:
                self.carried.note_memory(most_bytes(model))
            found.facts, found.size = context.facts, size
            trouble = trouble_in(context, step)
            if trouble:
                found.notes.append(trouble)
            else:
                self._rest(context, found)
        self.carried.after_look = most_bytes(model)
        if size != "whole" and not trouble:
            context.facts[THINNED] = 2.0 if context.bare else 1.0
            left = [look.name for look in looks_of(self.level) if is_dear(look, size)]
            why = self.thinning.why(a_step) if math.isinf(room) else "the budget of time does not allow them yet"
            found.notes.append(thinned_note(left, why))
        return found

    def _rest(self, context: LookContext, found: LookResult) -> None:
        """All but the loss."""
        context.facts |= facts_beside(context, self.held_out)
        context.forget_gradient()
        for look in looks_of(self.level)[1:]:
            if is_dear(look, found.size):
                continue
            began = self.clock()
            found.ask(look, context)
            if look.level != "cheap":
                found.added += self.clock() - began
            if look.name == "last-step":
                self.attached.release()
        if found.added:
            context.give_back()

    def _is_in_doubt(self, context: LookContext, records: Sequence[Record], a_step: float) -> bool:
        """Whether this look's loss, or what the last ones said, buys a whole one on credit."""
        loss, lr = context.facts.get("step_loss", math.nan), context.subject.lr
        on_credit = doubt(records, loss, lr, standing=bool(self.attached.alarms.standing))
        return self.thinning.affords(on_credit, a_step)
