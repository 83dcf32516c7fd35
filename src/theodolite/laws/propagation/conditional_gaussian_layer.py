r"""Given one layer, the next layer's preactivations are exactly Gaussian, however narrow the network.

So fourth moments over all networks are Gaussian ones of a random covariance:
$E\,z_\alpha^2z_\beta^2=E[\hat K_{\alpha\alpha}\hat K_{\beta\beta}+2\hat K_{\alpha\beta}^2]$, and $\hat K$ is a mean over n
independent units, whose moments are Gaussian integrals.
"""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory import Activation

C_W, C_B = 1.5, 0.1
NETS = 30_000
INPUTS = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, 0.5]], dtype=torch.float64) * 1.2


def predict(width: int, inputs: str) -> float:
    """Three means over a unit, $E\\sigma^2$, $E\\sigma\\sigma'$, and the covariances of those products, over n of them."""
    first = C_B + C_W * (INPUTS @ INPUTS.T).double() / INPUTS.shape[1]
    a, b, c = float(first[0, 0]), float(first[1, 1]), float(first[0, 1])
    if inputs == "one":
        b = c = a
    signal, square = Activation("tanh"), Activation(lambda z: torch.tanh(z).square())
    both = signal.covariance(a, b, c)
    means = [C_B + C_W * value for value in (signal.moment(a), signal.moment(b), both)]
    fourth = square.covariance(a, b, c)  # of squares at two inputs, which is also that of the product squared
    apart, crossed = fourth - signal.moment(a) * signal.moment(b), fourth - both**2
    share = C_W**2 / width
    return means[0] * means[1] + share * apart + 2 * (means[2] ** 2 + share * crossed)


def measure(width: int, inputs: str, *, generator: torch.Generator, entries: str = "gauss", copies: int = 1) -> Tensor:
    """Fourth moments of the answers of networks drawn with their weights."""
    ensemble = Ensemble(
        torch.tanh,
        (width,),
        weight_variance=C_W,
        bias_variance=C_B,
        entries="sign" if entries == "sign" else "gauss",
        copies=copies,
    )
    z = preactivations(ensemble, INPUTS, nets=NETS, generator=generator)[-1][:, :, 0]  # (nets, 2)
    return z[:, 0].square() * z[:, 0 if inputs == "one" else 1].square()


law = Law(
    claim="Over the random weights, and with the layer in front held fixed, the preactivations of a batch are jointly "
    "Gaussian with the covariance of that layer's signals: their fourth moments are Gaussian ones of that random covariance "
    "even at width 2.",
    formula=r"z_i\,|\,z^{(l)}\sim N(0,\hat K),\quad "
    r"\hat K_{\alpha\beta}=C_b+\frac{C_w}{n}\sum_j\sigma(z_{j\alpha})\sigma(z_{j\beta})",
    assumes={"Gaussian weights": {"entries": "sign"}, "units drawn one by one": {"copies": 2}},
    source="hanin2021; lee2018",
    predict=predict,
    measure=measure,
    cases=({"width": 2, "inputs": "one"}, {"width": 4, "inputs": "one"}, {"width": 2, "inputs": "two"}),
    full=({"width": 32, "inputs": "one"}, {"width": 32, "inputs": "two"}),
    tolerance=0.06,  # z^4 of a Gaussian scatters by 3.3 of its mean: 8 x 30,000 of them know it to 0.7 %, eight errors
    quantity="fourth moment of preactivations",
)
