r"""Does the loss jump, and is it a batch, a step or a change of the weights that made it?

A jump is a loss far above those of the steps before it: three times as far above their median as any of them was, and at least
three tenths of the way back to where training started (or three tenths of the loss itself, if little was learned). The cause is
what happened at that step and at none before: weights that changed between two steps; an update eight times as long as usual in
the five steps before; otherwise the batch, if most of its samples still have a higher loss than other batches do (a note if a
step on it does not make the loss of other samples jump). If none of the three explains the jump, nothing is said. A long step
or a batch that a run has made up for, so that it ends with nearly all that can be won, is a note.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from theodolite.core.ailment import Ailment, Finding, times
from theodolite.core.run import Run
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import has_won
from theodolite.evidence.thresholds import MISSED


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.run is None:
        return
    for finding in while_training(subject.run):
        made_up = subject.run.silent["loss spikes"][0] != "weights" and subject.has("loss") and has_won(subject)
        yield replace(finding, severity="note") if made_up else finding


def while_training(run: Run) -> Iterator[Finding]:
    """The last jump of the run."""
    words = run.silent.get("loss spikes", ())
    if not words:
        return
    cause, step, layer, usual, peak, factor, lr, usual_lr, sure, now, held = words
    harmless = False
    jumped = f"The loss jumped from {usual} to {peak} at step {step}"
    if cause == "weights":
        says = f"{jumped}: between two steps {layer or 'most layers'} changed by {times(float(factor))} times its norm."
        remedy = f"find what writes to {layer or 'the weights'} outside optimizer.step(): a reset, a scaling or a loaded state"
    elif cause == "step":
        length = f"{times(float(factor))} times as long as usual" if math.isfinite(float(factor)) else "infinitely long"
        says = f"{jumped}: the step there was {length}, most of all in {layer}."
        remedy = f"keep lr at {usual_lr}: it was {lr} in that step"
        if lr == usual_lr:
            remedy = f"torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before each step; lr was {lr} as before"
    else:
        says = f"{jumped}: the batch of that step is unusual." + (f" Its loss is {now} now." if sure else "")
        remedy = f"look at the samples and labels in the batch of step {step}"
        if held:
            before, plain, clipped, norm = held.split()
            harmless = float(plain) - float(before) <= MISSED * abs(float(before))  # any batch moves it a little
            says += (
                f" On a copy, one step on it takes the loss of the probe from {before} to {plain}; with gradients clipped at "
                f"norm {norm}, to {clipped}."
            )
    edge = _edge(run, int(step))
    yield Finding(
        severity="warning" if sure and not harmless else "note", where=f"step {step}", says=says + edge, remedy=remedy
    )


def _edge(run: Run, step: int) -> str:
    """Whether the curvature was above the limit of the step at the last look before, in words."""
    seen = [m for m in run.moments if m.step <= step and m.facts.get("edge", 0.0) > 0 and "sharpness" in m.facts]
    if not seen or not seen[-1].facts["sharpness"] > seen[-1].facts["edge"]:
        return ""
    ratio = seen[-1].facts["sharpness"] / seen[-1].facts["edge"]
    return f" The sharpness was {times(ratio)} times the limit of the learning rate at step {seen[-1].step}."


ailment = Ailment(question="Does the loss jump, and why?", needs={"run"}, judge=judge, while_training=while_training)
