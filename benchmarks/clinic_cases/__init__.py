"""Runs whose ailment is known, and healthy ones: what the diagnosis is judged on.

`cases()` lists them; `case.build(seed)` is the script just before its first step, `run(setup)` the plain loop. A seed of
`case.seeds` belongs to the case's half: thresholds may be chosen on "chosen", figures are reported on "unseen".
`python -m benchmarks.clinic_cases.verify` runs every case beside its twin and says whether it is what it claims to be.
"""

import os

# oneDNN's bfloat16 kernels stop with an illegal instruction on virtual machines that hide part of the processor
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

from .case import Case, suggestion
from .catalogue import AILMENTS, cases
from .recipe import Setup
from .run import held_out_loss, run, score

__all__ = ["AILMENTS", "Case", "Setup", "cases", "held_out_loss", "run", "score", "suggestion"]
