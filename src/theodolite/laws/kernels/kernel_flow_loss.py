r"""The loss of a fixed kernel falls as $\sum_i(u_i\cdot y)^2e^{-2t\lambda_i/\lambda_{\max}}$, and large steps diverge."""

import numpy as np

from theodolite.core.law import Law
from theodolite.theory.kernels import kernel_learning

SAMPLES, STEPS = 6, 4000


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(SAMPLES, 9))
    return phi, rng.normal(size=(SAMPLES, 2))


def predict(what: str) -> float:
    phi, y = data()
    found = kernel_learning(phi @ phi.T, y, times=(0.8, 4.0))
    return {"loss at 0.8": found.losses[0], "loss at 4": found.losses[1], "largest step": found.limit}[what]


def measure(what: str, *, decay: float = 0.0) -> float:
    """Weights follow the slope in small steps; the largest step is the one beyond which descent grows."""
    phi, y = data()
    top = float(np.linalg.norm(phi, 2)) ** 2  # of the features, not of the kernel
    if what == "largest step":
        low, high = 0.0, 3.0 * SAMPLES / top
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _grows_not(phi, middle, decay) else (low, middle)
        return low
    time = 0.8 if what == "loss at 0.8" else 4.0
    w, h = np.zeros((9, 2)), time / top / STEPS

    def slope(at: np.ndarray) -> np.ndarray:
        return phi.T @ (y - phi @ at) - decay * at  # type: ignore[no-any-return]

    for _ in range(STEPS):
        w = w + h * slope(w + 0.5 * h * slope(w))
    return float(np.square(y - phi @ w).sum() / np.square(y).sum())


def _grows_not(phi: np.ndarray, lr: float, decay: float) -> bool:
    w = np.random.default_rng(2).normal(size=9)
    for _ in range(60):
        w = w - lr / SAMPLES * (phi.T @ (phi @ w) + decay * w)
    start = np.linalg.norm(w)
    for _ in range(400):
        w = w - lr / SAMPLES * (phi.T @ (phi @ w) + decay * w)
    return bool(np.linalg.norm(w) <= start)


law = Law(
    claim="The eigenvalues of a kernel and the targets' shares in its eigenvectors say how the loss falls and which step is the "
    "largest.",
    formula=r"\frac{L(t)}{L(0)}=\frac{\sum_i(u_i\cdot y)^2e^{-2t\lambda_i/\lambda_{\max}}}{\sum_i(u_i\cdot y)^2},\qquad"
    r"\eta<\frac{2m}{\lambda_{\max}}",
    assumes={"no weight decay": {"decay": 0.071}},
    source="lee2019",
    predict=predict,
    measure=measure,
    cases=tuple({"what": w} for w in ("loss at 0.8", "loss at 4", "largest step")),
    tolerance=1e-3,  # growth by the last bits is not seen within 400 steps: a step is found to 1e-4
    quantity="relative loss, or step",
)
