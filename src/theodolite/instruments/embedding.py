"""How long are the rows of embeddings and of the head that answers in the same tokens, and are the two tied?

Rows of independent entries have nearly one length: those of Gaussian entries in d dimensions spread by 1/sqrt(2 d) of it.
Training changes that, because frequent tokens are updated often and rare ones hardly ever. A head of its own begins without
any relation to the embedding: the cosine between the two rows of a token is 0 on average, within 3/sqrt(V d) for V tokens.
"""

import math
from collections.abc import Iterator

from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject


def read(subject: Subject) -> Iterator[Reading]:
    """Lengths of the rows of each table, and the cosine between embedding and head."""
    modules = dict(subject.model.named_modules())
    tables = {name: m.weight for name, m in modules.items() if isinstance(m, nn.Embedding)}
    heads = [(name, m.weight) for name, m in modules.items() if isinstance(m, nn.Linear)][-1:]  # the last one answers
    heads = [(name, weight) for name, weight in heads if any(weight.shape == table.shape for table in tables.values())]
    for name, table in tables.items():
        tied = [f"It is also the head {head}: tied. " for head, weight in heads if weight is table]
        yield from _lengths(name, table, "".join(tied))
    for name, weight in heads:
        other = next(one for one, table in tables.items() if table.shape == weight.shape)
        if all(weight is not table for table in tables.values()):
            yield from _lengths(name, weight, f"It is not tied to {other}. ")
            yield _cosine(name, weight, other, tables[other])


def _lengths(name: str, table: Tensor, said: str) -> Iterator[Reading]:
    size = table.shape[1]
    lengths = table.detach().double().norm(dim=1)
    lengths = lengths[lengths > 0]  # the row of padding is zero
    if len(lengths) < 2:
        return
    mean, spread = float(lengths.mean()), float(lengths.std())
    yield Reading(
        quantity="length of the rows",
        where=name,
        measured=mean,
        stderr=spread / math.sqrt(len(lengths)),
        meaning=f"{said}The mean of {len(lengths)} rows in {size} dimensions, from {float(lengths.min()):.3g} to "
        f"{float(lengths.max()):.3g}: {mean / math.sqrt(size):.2g} for each entry.",
    )
    chance = 1 / math.sqrt(2 * size)
    share = spread / mean
    # so many rows know their spread to 1/sqrt(2 n); lengths of uniform entries spread less than Gaussian ones, by sqrt(2/5)
    error = 3 / math.sqrt(2 * (len(lengths) - 1))
    band = Band(max(0.0, chance * math.sqrt(0.4) * (1 - error)), chance * (1 + error))
    yield Reading(
        quantity="spread of the lengths of the rows, relative to their mean",
        where=name,
        measured=share,
        expected=band,
        against="chance",
        meaning="Rows have nearly one length, as at random."
        if share <= band.high
        else f"Rows differ {share / chance:.2g} times as much in length as random ones: some were trained more than others.",
    )


def _cosine(name: str, weight: Tensor, other: str, table: Tensor) -> Reading:
    cosines = nn.functional.cosine_similarity(weight.detach().double(), table.detach().double(), dim=1)
    mean = float(cosines.mean())
    limit = 3 / math.sqrt(weight.numel())
    return Reading(
        quantity="cosine between head and embedding, token by token",
        where=f"{name} and {other}",
        measured=mean,
        expected=Band(-limit, limit),
        against="chance",
        meaning=f"The mean over {len(cosines)} tokens. "
        + (
            "The two have no relation, as at random."
            if abs(mean) <= limit
            else "The two have learned a common direction for each token; tying them would save parameters."
            if mean > 0
            else "The head points away from the embedding of the same token: repeating a token is made unlikely."
        ),
    )


instrument = Instrument(
    question="How long are the rows of embedding and head, and are they tied?",
    read=read,
    needs={"model"},
    cost="free",
    laws=("johnson-lindenstrauss", "conditional-gaussian-layer"),
)
