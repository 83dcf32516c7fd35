"""How many of its directions does a low-rank adapter use in each module?

An adapter changes a weight by scale x B A, which has at most the chosen rank. How many directions it uses is read from its
singular values, without forming the product (two triangular factors of the size of the rank have the same ones), and compared
with a product of random factors of the same shapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.io.adapters import Adapted
from theodolite.measure.spectra import Spectrum
from theodolite.theory.spectra import random_product_rank_band


@dataclass(frozen=True)
class _Product:
    module: Adapted
    spectrum: Spectrum
    band: Band


def read(subject: Subject) -> Iterator[Reading]:
    """For every module the size of its change, the rank of B A and the directions it uses."""
    products = [_product(module) for module in (subject.adapter or {}).values()]
    for product in products:
        yield Reading(
            quantity="size of what the adapter adds",
            where=product.module.module,
            measured=product.spectrum.trace**0.5,
            meaning=f"The Frobenius norm of {product.module.scale:.3g} x B A; its largest singular value is "
            f"{product.spectrum.largest**0.5:.3g}."
            + (" Pass --base to compare it with the weight that it changes." if subject.origin is None else "")
            + (f" Here {product.module.note}." if product.module.note else ""),
        )
    for product in products:
        rank = product.spectrum.numerical_rank if product.spectrum.largest > 0 else 0
        yield Reading(
            quantity="rank of B A",
            where=product.module.module,
            measured=float(rank),
            expected=Band(0.0, float(product.module.rank)),
            meaning=f"Of {product.module.rank} nominal. "
            + ("B is still zero: nothing was learned here." if rank == 0 else "It cannot exceed the nominal rank."),
        )
    for product in products:
        if product.spectrum.largest > 0 and product.module.rank > 1:
            yield _used(product)


def _used(product: _Product) -> Reading:
    used, rank = product.spectrum.effective_rank, product.module.rank
    return Reading(
        quantity="directions that the adapter uses",
        where=product.module.module,
        measured=used,
        expected=product.band,
        against="chance",
        meaning=f"The effective rank of B A (entropy of its singular values), of {rank} nominal. "
        + (
            f"Fewer than random factors would use: a rank of {max(1, round(used))} would hold most of it."
            if used < product.band.low
            else "As many as random factors use."
        ),
    )


def _product(module: Adapted) -> _Product:
    up, down = module.factors()
    left, right = (torch.linalg.qr(factor, mode="r")[1] for factor in (up, down.T))
    values = torch.linalg.svdvals(left @ right.T).square().flip(0).numpy()  # ascending, as of B A
    rows, columns = up.shape[0], down.shape[1]
    band = random_product_rank_band(rows, min(module.rank, rows, columns), columns)
    return _Product(module, Spectrum(values, rows, columns, module.down.dtype), band)


instrument = Instrument(
    question="How many of its directions does the adapter use?",
    read=read,
    needs={"adapter"},
    cost="free",
    laws=("horn-majorization", "marchenko-pastur"),
)
