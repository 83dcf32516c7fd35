"""One look is taken: as much of its level as it may cost, and the gradient where its loss looks wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.io.batches import Batch
from theodolite.verbs.watching.attachments import Attachments
from theodolite.verbs.watching.look_context import Batching, Carried, Level, LookContext
from theodolite.verbs.watching.looks import LOOKS, Look, is_dear, looks_of, trouble_in
from theodolite.verbs.watching.records import THINNED, Record, thinned_note
from theodolite.verbs.watching.thinning import LookAccount, LookPrices, Size, doubt
from theodolite.verbs.watching.training_hooks.training import most_bytes
from theodolite.verbs.watching.watched_run import facts_beside


@dataclass
class LookResult:
    """What one look read, what it could not and why, and its facts."""

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
    """What the looks of a run are taken with."""

    attached: Attachments
    carried: Carried
    level: Level
    batching: Batching
    account: LookAccount

    def look(
        self,
        subject: Subject,
        held_out: Sequence[Batch],
        records: Sequence[Record],
        step: int,
        *,
        whole: bool,
        prices: LookPrices,
        trained: float,
    ) -> LookResult:
        """What a look at this subject reads after these records, and after so much work of training; it is paid."""
        first = not records and not self.account.is_endless
        size: Size = "whole" if whole else "loss" if first else self.account.size(prices, trained)
        training, model = self.attached.training(), self.attached.model
        self.attached.errors.compare(training.before, {} if self.attached.last is None else self.attached.last.pulls)
        context = LookContext(subject, self.carried, self.level, self.batching, training, bare=size == "loss")
        self.carried.note_memory(most_bytes(model))
        found = LookResult()
        with self.attached.looking(training):
            found.ask(LOOKS[0], context)
            if context.bare and self._is_in_doubt(context, records, prices, trained):
                size = "gradient"
                context, found = replace(context, bare=False, facts={}), LookResult()
                found.ask(LOOKS[0], context)
            if self.carried.after_look == 0:
                self.carried.note_memory(most_bytes(model))
            found.facts = context.facts
            trouble = trouble_in(context, step)
            if trouble:
                found.notes.append(trouble)
            else:
                self._rest(context, found, size, held_out)
        self.carried.after_look = most_bytes(model)
        left = [look.name for look in looks_of(self.level) if is_dear(look, size)]
        if left and not trouble:
            context.facts[THINNED] = 2.0 if context.bare else 1.0
            found.notes.append(
                thinned_note(left, f"measurements take {100 * self.account.share:g} % of the work of training")
            )
        if not whole:
            self.account.paid(size, prices, context.products)
        return found

    def _rest(self, context: LookContext, found: LookResult, size: Size, held_out: Sequence[Batch]) -> None:
        """All but the loss."""
        context.facts |= facts_beside(context, held_out, whole=size == "whole")
        context.forget_gradient()
        for look in looks_of(self.level)[1:]:
            if is_dear(look, size):
                continue
            found.ask(look, context)
            if look.name == "last-step":
                self.attached.release()
        if size == "whole" and self.level != "cheap":
            context.give_back()

    def _is_in_doubt(self, context: LookContext, records: Sequence[Record], prices: LookPrices, trained: float) -> bool:
        """Whether this look's loss, or what the last ones said, buys a gradient on credit."""
        loss, lr = context.facts.get("step_loss", math.nan), context.subject.lr
        on_credit = doubt(records, loss, lr, standing=bool(self.attached.alarms.standing))
        return bool(on_credit) and self.account.affords(on_credit, prices, trained)
