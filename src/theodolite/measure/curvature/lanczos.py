"""The ends of a symmetric matrix's spectrum from products alone, each value with a bound on its error."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from theodolite.core.checks import at_least

MEMORY = 1 << 29
"""Bytes that the basis may take unless told otherwise."""

PIECE = 1 << 20
"""Random numbers that are drawn at once."""

SECOND_LOOK = 8
"""Products spent, once all has converged, from a new random start: a repeated eigenvalue shows only there."""


class Symmetric(Protocol):
    """What is asked of a matrix: its size, a tensor of its kind, and products with a vector."""

    @property
    def size(self) -> int:
        """The number of rows."""

    @property
    def like(self) -> Tensor:
        """A tensor of its precision and device."""

    def __call__(self, vectors: Tensor, /) -> Tensor:
        """The matrix times each row."""


@dataclass(frozen=True)
class Eigenpairs:
    r"""Eigenvalues with bounds on their errors, vectors as rows (count, P), and what it took.

    ``residuals`` are $|Av-\theta v|$: an eigenvalue lies that near for certain. ``errors`` are
    $\min(r,r^2/\mathrm{gap})$ plus rounding, the gap taken to the nearest other
    value where that is known ten times better than the gap, else $r$ plus rounding.
    """

    values: tuple[float, ...]
    errors: tuple[float, ...]
    residuals: tuple[float, ...]
    vectors: Tensor = field(repr=False)
    products: int
    converged: bool


def extreme_eigenpairs(
    operator: Symmetric,
    *,
    count: int = 10,
    lowest: bool = False,
    tolerance: float | None = None,
    most: int | Callable[[int], bool] = 2000,
    start: Tensor | None = None,
    memory: int = MEMORY,
) -> Eigenpairs:
    r"""The ``count`` largest (or ``lowest``) eigenvalues by Lanczos with full reorthogonalization and thick restarts.

    Stops when every error bound is below ``tolerance`` times the largest modulus found (1e-6 in float32, 1e-10 in
    float64), or after ``most`` products (or when ``most(products)`` says so): ``converged`` says which. Once all has
    converged a new random start looks for repeated eigenvalues, which one Krylov space cannot show; not with a
    ``start`` of one's own (a vector near those sought). The basis takes at most ``memory`` bytes, then it restarts.
    The same call gives the same numbers. Source: parlett1998, section 4.5; wu2000.

    >>> from types import SimpleNamespace
    >>> class Diagonal(SimpleNamespace):
    ...     def __call__(self, v): return v * self.like
    >>> matrix = Diagonal(size=100, like=torch.arange(100.0, dtype=torch.float64))
    >>> [round(value, 6) for value in extreme_eigenpairs(matrix, count=3).values]
    [99.0, 98.0, 97.0]
    """
    at_least(1, count=count)
    state = _Krylov(operator, count=min(count, operator.size), sign=-1.0 if lowest else 1.0, memory=memory)
    eps = torch.finfo(operator.like.dtype).eps
    tolerance = max(
        4 * eps, (1e-6 if operator.like.dtype == torch.float32 else 1e-10) if tolerance is None else tolerance
    )
    state.begin(start)
    look = 0 if start is not None else SECOND_LOOK
    enough = most if callable(most) else lambda products: products >= most
    while not state.exhausted() and not enough(state.products):
        state.step()
        if state.is_time() and bool((state.errors() <= tolerance * state.scale()).all()):
            found = state.result(converged=True)
            if not look or not state.looked_again(look, tolerance):
                return replace(found, products=state.products)
    return state.result(converged=state.exhausted())


class _Krylov:
    r"""A growing orthonormal basis (rows of V), the projected matrix T, and the residuals that are still to be followed.

    A residual is a unit vector q with its couplings c: of $A\,V^Ts$ the part outside the basis is $\sum(c\cdot s)\,q$.
    """

    def __init__(
        self,
        operator: Symmetric,
        *,
        count: int,
        sign: float,
        memory: int,
        most: int | None = None,
        fewest: int | None = None,
    ) -> None:
        self.operator, self.count, self.sign = operator, count, sign
        like, size = operator.like, operator.size
        room = memory // max(1, size * like.element_size())
        self.most_rows = min(size, max(fewest or count + 4, min(room, 2 * count + 20), min(room, 400)))
        if most is not None:
            self.most_rows = min(self.most_rows, max(count + 1, most))
        self.basis = torch.empty(self.most_rows, size, dtype=like.dtype, device=like.device)
        self.projected = torch.zeros(self.most_rows, self.most_rows, dtype=torch.float64)
        self.pending: list[tuple[Tensor, Tensor]] = []
        self.rows = self.products = 0
        self.generator = torch.Generator().manual_seed(0)
        self._ritz: tuple[Tensor, Tensor] | None = None

    def begin(self, start: Tensor | None) -> None:
        first = self._noise()
        if start is not None:
            near = start.to(self.basis).reshape(-1)
            first = first.mul_(1e-3).add_(near, alpha=1 / float(near.norm()))
        self.pending.append((first, torch.zeros(0, dtype=torch.float64)))

    def step(self, *, newest: bool = False) -> None:
        """One product: a residual joins the basis, and its image is orthogonalized against all of it, twice."""
        if self.rows == self.most_rows:
            self._restart()
        vector, _ = self.pending.pop(-1 if newest else 0)
        vector, _ = self._orthogonal(vector)
        row, size = self.rows, float(vector.norm())
        if size < 1e-2:  # it lies in the basis by now
            vector, _ = self._orthogonal(self._noise())
            size = float(vector.norm())
        torch.div(vector, size, out=self.basis[row])
        del vector  # it may be as long as all that the model holds
        self.rows, self._ritz = row + 1, None
        image = self.operator(self.basis[row])
        rest, column = self._orthogonal(image if self.sign == 1 else self.sign * image)
        del image
        self.products += 1
        self.projected[: row + 1, row] = column
        self.projected[row, : row + 1] = column
        if self.exhausted():
            self.pending.clear()
            return
        beta = float(rest.norm())
        if beta > 10 * torch.finfo(rest.dtype).eps * self.scale():
            couplings = torch.zeros(self.rows, dtype=torch.float64)
            couplings[row] = beta
            self.pending.append((rest.div_(beta), couplings))
        elif not self.pending:  # an invariant space: look beyond it
            self.pending.append((self._noise(), torch.zeros(self.rows, dtype=torch.float64)))

    def looked_again(self, products: int, tolerance: float) -> bool:
        """Follow a random start for some products; whether that changed a value sought."""
        if self.exhausted():
            return False
        before, close = self.ritz()[0][: self.count], 10 * tolerance * self.scale()
        self.pending.append((self._noise(), torch.zeros(self.rows, dtype=torch.float64)))
        for _ in range(products):
            self.step(newest=True)
            if self.exhausted() or bool(((self.ritz()[0][: self.count] - before).abs() > close).any()):
                return True
        return False

    def exhausted(self) -> bool:
        """Whether the basis spans everything."""
        return self.rows == self.operator.size

    def is_time(self) -> bool:
        """Small eigenproblems are solved at every step, larger ones now and then."""
        return self.rows >= self.count and (self.rows <= 40 or self.rows % 4 == 0 or self.rows == self.most_rows)

    def ritz(self) -> tuple[Tensor, Tensor]:
        """Values, largest first, and their coefficients as columns."""
        if self._ritz is None:
            values, vectors = torch.linalg.eigh(self.projected[: self.rows, : self.rows])
            self._ritz = values.flip(0), vectors.flip(1)
        return self._ritz

    def scale(self) -> float:
        """The largest modulus found."""
        return float(self.ritz()[0].abs().max())

    def residuals(self, count: int | None = None) -> Tensor:
        r"""Bounds on the norms of $Av-\theta v$ for the first pairs, those sought unless told."""
        vectors = self.ritz()[1][:, : count or self.count]
        found = torch.zeros(vectors.shape[1], dtype=torch.float64)
        for _, couplings in self.pending:
            found += (couplings @ vectors[: len(couplings)]).abs()
        return found

    def errors(self) -> Tensor:
        """Bounds on the errors of the values sought; a gap counts only to a neighbor that is itself known."""
        values, every = self.ritz()[0], self.residuals(self.rows)
        own = every[: self.count]
        if self.rows <= self.count:
            return own
        apart = (values[: self.count, None] - values[None, :]).abs()
        apart[torch.arange(self.count), torch.arange(self.count)] = torch.inf
        nearest = apart.argmin(1)
        gap, unknown = apart.amin(1), every[nearest]
        return torch.where(gap > 10 * (own + unknown), torch.minimum(own, own.square() / (0.9 * gap)), own)

    def result(self, *, converged: bool) -> Eigenpairs:
        """What is known now."""
        values, vectors = self.ritz()
        floor = 4 * torch.finfo(self.basis.dtype).eps * self.scale()
        rows = self._mixed(vectors[:, : self.count])
        return Eigenpairs(
            tuple((self.sign * values[: self.count]).tolist()),
            tuple((self.errors() + floor).tolist()),
            tuple((self.residuals() + floor).tolist()),
            rows,
            self.products,
            converged,
        )

    def _restart(self) -> None:
        """Keep the best part of the basis, and the residuals that lead on from it."""
        keep = min(max(self.count, self.most_rows - 3), self.count + max(8, (self.most_rows - self.count) // 3))
        values, vectors = (part[..., :keep] for part in self.ritz())
        self.basis[:keep] = self._mixed(vectors)
        self.projected.zero_()
        self.projected[:keep, :keep] = torch.diag(values)
        self.pending = [(vector, c @ vectors[: len(c)]) for vector, c in self.pending]
        self.rows, self._ritz = keep, None

    def _mixed(self, columns: Tensor) -> Tensor:
        """Combinations of the basis, (combinations, P), by columns of coefficients."""
        V, weights = self.basis[: self.rows], columns.to(self.basis).T
        with self._exactly():
            if _is_slow(V) and len(weights) == 1:
                return _added(V[0] * weights[0, 0], V[1:], weights[0, 1:])[None]
            return weights @ V

    def _orthogonal(self, vector: Tensor) -> tuple[Tensor, Tensor]:
        """What is left of a vector outside the basis, and its coefficients inside."""
        V = self.basis[: self.rows]
        with self._exactly():
            inside = _products(V, vector)
            rest = _added(vector.clone(), V, -inside) if _is_slow(V) else torch.addmv(vector, V.T, inside, alpha=-1)
            again = _products(V, rest)
            return _added(rest, V, -again), (inside + again).double().cpu()

    def _exactly(self) -> torch.autocast:
        """An autocast around the search is that of its products, not of the basis."""
        return torch.autocast(self.basis.device.type, enabled=False)

    def _noise(self) -> Tensor:
        size, like = self.operator.size, self.basis
        if like.device.type == "cuda" and size > 1 << 20:  # to draw them elsewhere would take longer than all products
            own = torch.Generator(like.device).manual_seed(self.products)
            noise = torch.randn(size, generator=own, dtype=like.dtype, device=like.device)
        else:
            noise = torch.empty(size, dtype=like.dtype, device=like.device)
            for part in torch.split(noise, PIECE):  # not all of them at once in double precision
                part.copy_(torch.randn(len(part), generator=self.generator, dtype=torch.float64))
        return noise.div_(noise.norm())


FEW_ROWS = 8
"""Rows of a basis on a GPU up to which they are taken one by one: the library's products of so flat a matrix are slow."""


def _is_slow(V: Tensor) -> bool:
    return V.device.type == "cuda" and len(V) <= FEW_ROWS


def _products(V: Tensor, vector: Tensor) -> Tensor:
    """Each row's product with a vector."""
    return torch.stack([torch.dot(row, vector) for row in V]) if _is_slow(V) and len(V) else V @ vector


def _added(vector: Tensor, V: Tensor, weights: Tensor) -> Tensor:
    """The rows times their weights are added to a vector, in place."""
    if not _is_slow(V):
        return vector.addmv_(V.T, weights)
    for row, weight in zip(V, weights, strict=True):
        vector.addcmul_(row, weight)
    return vector
