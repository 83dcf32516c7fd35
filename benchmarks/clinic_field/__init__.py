"""The field: runs rebuilt from what people ask in public about training that does not work, each beside its cure.

`CASES` holds them by name; `case.build(seed)` is the run as it was asked about, `case.build(seed, fixed=True)` the same with the
accepted answer applied. A case without `accept` is a question whose answer was that nothing is wrong. Code, data and words are
this repository's own: what is taken from a source is the situation and the answer.
"""

import os

# oneDNN's bfloat16 kernels stop with an illegal instruction on virtual machines that hide part of the processor
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

from . import data, depth, finetuning, loops, losses, sequences, steps  # noqa: F401  (each puts its cases into CASES)
from .case import CASES, Case, Run, chance_of, held_out_loss, score_of, skill_of, train

__all__ = ["CASES", "Case", "Run", "chance_of", "held_out_loss", "score_of", "skill_of", "train"]
