r"""A linear model with a random start, trained by gradient flow or descent, answers as the two kernels say at every time."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import Kernels, trained_prediction

FEATURES, SAMPLES, STEPS, END = 6, 4, 3000, 200.0


def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of the training points and of a new one, targets, and the unequal sizes of the weights at the start."""
    generator = torch.Generator().manual_seed(4)
    phi = torch.randn(SAMPLES + 1, FEATURES, generator=generator, dtype=torch.float64)
    y = 1.0 + torch.randn(SAMPLES, generator=generator, dtype=torch.float64)
    return phi[:SAMPLES], phi[SAMPLES:], y, torch.linspace(0.3, 1.5, FEATURES, dtype=torch.float64)


def predict(moment: str, time: float, discrete: bool) -> float:
    phi, new, y, sizes = data()
    pairs = ((phi, phi), (new, phi), (new, new))
    train, cross, prior = (Kernels((a * sizes**2) @ b.T, a @ b.T) for a, b in pairs)
    lr = 0.5 if discrete else 1.0
    found = trained_prediction(train, y, time=time, cross=cross, prior=prior, lr=lr, discrete=discrete)
    return float(found.mean[0] if moment == "mean" else found.variance[0])


def measure(moment: str, time: float, discrete: bool, *, decay: float = 0.0, share: float = 1.0) -> float:
    """Training maps starts to answers by an affine map: found from the answers for no start and for each weight's own."""
    phi, new, y, sizes = data()
    theta = torch.cat([torch.zeros(1, FEATURES, dtype=torch.float64), torch.diag(sizes * math.sqrt(share))])

    def slope(at: Tensor) -> Tensor:
        return (y - at @ phi.T) @ phi / SAMPLES - decay * at

    if discrete:
        for _ in range(round(time)):
            theta = theta + 0.5 * slope(theta)
    else:
        h = min(time, END) / STEPS
        for _ in range(STEPS):  # the midpoint rule
            theta = theta + h * slope(theta + 0.5 * h * slope(theta))
    mean, *others = (theta @ new.T)[:, 0].tolist()
    return float(mean if moment == "mean" else sum((other - mean) ** 2 for other in others))


law = Law(
    claim="Over random starts the answer of a model that is linear in its weights has, after any time of training, the mean and "
    "the variance that its tangent kernel and the kernel of its start give.",
    formula=r"Ef_t=Ay,\quad\mathrm{Var}f_t=K_{xx}-AK_{Xx}-K_{xX}A^\top+AK_{XX}A^\top,\quad "
    r"A=\Theta_{xX}\Theta^{-1}\big(1-e^{-\Theta t/m}\big)\ \text{or}\ "
    r"\Theta_{xX}\Theta^{-1}\big(1-(1-\tfrac{\eta}{m}\Theta)^t\big)",
    assumes={"no weight decay": {"decay": 9.3e-06}, "weights of the sizes supposed at the start": {"share": 0.997}},
    source="lee2019, equations 15 and 16",
    predict=predict,
    measure=measure,
    cases=(
        {"moment": "mean", "time": 0.7, "discrete": False},
        {"moment": "variance", "time": 0.7, "discrete": False},
        {"moment": "variance", "time": math.inf, "discrete": False},
        {"moment": "mean", "time": 3, "discrete": True},
        {"moment": "variance", "time": 3, "discrete": True},
    ),
    tolerance=1e-3,  # the flow in steps of 1/60 of the time of its fastest direction
    quantity="answer at a new point",
)
