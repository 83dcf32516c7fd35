"""Do outputs depend on how much padding follows a sequence?

Exact. A batch of tokens padded at the end goes through the model twice: as it is, and with columns of padding removed. The
sequences have not changed, so the outputs must not either. Attention without a mask averages over padding, so the same
sentence gets a different output in a longer batch. The check runs only on models that use attention, and reports when the
predicted class changes for at least one sequence (or position) in twenty. A recurrent network that reads its last state after
the padding has forgotten the sequence by then: this is reported if the network has learned nothing.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows, sample_of
from theodolite.evidence.drawn_outputs import members_of, quiet
from theodolite.evidence.start import steps_are_known, steps_made
from theodolite.evidence.task import is_finite, task
from theodolite.evidence.thresholds import A_FEW, A_RUN, NOTHING, RARELY, SAMPLES
from theodolite.evidence.trial import present_skill
from theodolite.evidence.work import Seeing
from theodolite.io.batches import Batch


def judge(subject: Subject) -> Iterator[Finding]:
    model, whole = subject.model, batches(subject)
    if model is None or not whole or not is_finite(subject):
        return
    batch = _longest(whole)
    tokens = _tokens(batch)
    padding = None if tokens is None else _padding(tokens)
    if tokens is None or padding is None:
        return
    behind = (tokens == padding).flip(1).cumprod(1).sum(1)  # columns of padding at the end of each row
    rows = behind >= max(1, int(behind.float().quantile(0.5)))
    cut = int(behind[rows].min()) if bool(rows.any()) else 0
    length = tokens.shape[1]
    if cut < 1 or int(rows.sum()) < A_FEW or cut >= length:
        return
    picked = batch.picked(rows)
    try:
        with untouched(model), torch.no_grad(), quiet(), _Attention() as seen:  # type: ignore[no-untyped-call]
            before = members_of(subject.answer(picked))[task(subject).member].float()
            after = members_of(subject.answer(_shorter(picked, length, length - cut)))[task(subject).member].float()
    except (RuntimeError, ValueError, TypeError, IndexError):  # it takes sequences of one length only
        return
    forgets = not seen.ran and _forgets(subject)
    if not seen.ran and not forgets:
        return
    if before.ndim > 2 and before.shape[1] == length:  # an answer at each place: those of padding mean nothing
        real = (tokens[rows] != padding)[:, : length - cut]
        before, after = before[:, : length - cut][real], after[real]
    if before.shape != after.shape or not before.numel():
        return
    moved = float((after - before).abs().mean() / before.std().clamp(min=1e-12))
    if moved < NOTHING:
        return
    wide = before.ndim > 1 and before.shape[-1] > 1 and task(subject).kind == "classes"
    flipped = float((before.argmax(-1) != after.argmax(-1)).double().mean()) if wide else moved
    yield Finding(
        severity="warning" if flipped >= RARELY or forgets else "note",
        where="the last state" if forgets else "attention",
        says=f"Outputs depend on padding: removing {cut} of {length} columns, all padding, changes "
        + (
            f"the predicted class in {flipped:.0%} of cases."
            if wide
            else f"the outputs by {moved:.2g} of their spread."
        ),
        remedy=f"read the state at the last token before padding: states[range(n), (tokens != {padding}).sum(1) - 1], or "
        "torch.nn.utils.rnn.pack_padded_sequence"
        if forgets
        else f"mask the padding: src_key_padding_mask=(tokens == {padding}) in nn.Transformer, else attention_mask; also "
        "leave padding out of averages over tokens",
        suggested={"padding": padding},
        evidence=(
            evidence("change of the outputs, relative to their spread", moved),
            evidence("share of predictions that change", flipped),
        ),
    )


def _forgets(subject: Subject) -> bool:
    """Whether it is a recurrent network that was trained and has learned nothing."""
    recurrent = any(isinstance(module, nn.RNNBase) for module in subject.model.modules())
    ran = steps_are_known(subject) and steps_made(subject) >= A_RUN  # a pretrained one may not have begun
    return recurrent and ran and present_skill(subject) <= NOTHING


class _Attention(Seeing):  # type: ignore[no-untyped-call]
    """Sees whether an attention runs: its own kernels, or a softmax over pairs of places."""

    ran = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = str(func)
        pairs = "_softmax" in name and isinstance(out, Tensor) and out.ndim > 2 and out.shape[-1] == out.shape[-2]
        self.ran = self.ran or "attention" in name or "transformer_encoder" in name or (pairs and "log" not in name)
        return out


def _tokens(batch: Batch) -> Tensor | None:
    """The one input of whole numbers with a row a sequence; a mask beside it is not."""
    found = [t for t in batch.tensors() if t.ndim == 2 and t.dtype in (torch.int64, torch.int32) and int(t.max()) > 1]
    return found[0] if len(found) == 1 else None


def _padding(tokens: Tensor) -> int | None:
    """The token that ends rows of several lengths and stands nowhere else."""
    last, counts = torch.unique(tokens[:, -1], return_counts=True)
    for value in last[counts.argsort(descending=True)][:2].tolist():
        is_it = tokens == value
        behind = is_it.flip(1).cumprod(1).flip(1).bool()
        ends = behind.sum(1)
        inside = int((is_it & ~behind).sum())
        if inside == 0 and int((ends > 1).sum()) >= A_FEW and len(torch.unique(ends)) > 1:
            return int(value)
    return None


def _longest(whole: Any) -> Batch:
    """Batches joined where they have one length, else the first."""
    first = whole[0]
    few = [
        batch
        for batch in whole[:16]
        if [t.shape[1:] for t in batch.tensors()] == [t.shape[1:] for t in first.tensors()]
    ]
    sample = sample_of(few)
    if sample is None or sample.target is None or first.keywords or len(first.inputs) != len(sample.inputs):
        return first_rows(first, SAMPLES)
    return first_rows(Batch(sample.inputs, {}, sample.target), SAMPLES)


def _shorter(batch: Batch, length: int, kept: int) -> Batch:
    """The batch with all tensors of that length cut."""

    def cut(value: Any) -> Any:
        fits = isinstance(value, Tensor) and value.ndim > 1 and value.shape[1] == length
        return value[:, :kept] if fits else value

    return Batch(
        tuple(map(cut, batch.inputs)), {name: cut(value) for name, value in batch.keywords.items()}, batch.target
    )


ailment = Ailment(question="Do outputs depend on padding?", needs={"model", "data", "loss"}, judge=judge)
