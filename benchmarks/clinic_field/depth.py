"""Questions whose answer was the network as it was built: its depth, its first weights, its activations, its width."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import sets
from .case import Run, case, sign_accuracy
from .parts import Residual, Rnn, Transformer, cnn, he_, mlp, normal_, xavier_

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


@case(
    "gradient-vanishes",
    "signal-vanishes",
    "inputs-merge",
    "units-saturated",
    "step-too-small",
    source="flashgene.com/archives/169753; rogertrullo/Receptive-Field-in-Pytorch issue 3",
)
def many_sigmoids(fixed):
    """Asked: more layers of sigmoids make digits worse, the first layers hardly learn. Answer: the slope of the sigmoid
    multiplies from layer to layer; use ReLU and a fitting start."""
    train, held = sets.digits()
    model = he_(mlp(64, *[32] * 7, 10)) if fixed else mlp(64, *[32] * 7, 10, act=nn.Sigmoid)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.02, momentum=0.9), steps=400)


@case(
    "gradient-vanishes",
    "signal-vanishes",
    "inputs-merge",
    "step-too-small",
    source="devgem.io (stagnant metrics of LeNet, PyTorch)",
)
def lenet_of_sigmoids(fixed):
    """Asked: LeNet with sigmoids shows the same loss in every epoch. Answer: sigmoids saturate and were not initialized for;
    ReLU with a smaller step, or Glorot's weights."""
    train, held = sets.images()
    model = cnn(act=nn.ReLU if fixed else nn.Sigmoid)
    layers = [*list(model)[:-1], nn.Linear(64, 48), nn.ReLU() if fixed else nn.Sigmoid(), nn.Linear(48, 32)]
    model = nn.Sequential(*layers, nn.ReLU() if fixed else nn.Sigmoid(), nn.Linear(32, 10))
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.1), steps=400)


@case("signal-vanishes", "gradient-vanishes", "inputs-merge", source="ageron/handson-ml pull request 176")
def weights_of_a_hundredth(fixed):
    """Asked: it takes very long until the loss moves at all. Answer: first weights have a deviation of 0.01; a larger one learns
    right away."""
    train, held = sets.digits()
    model = mlp(64, 64, 64, 64, 64, 10)
    model = he_(model) if fixed else normal_(model, 0.01)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.05, momentum=0.5), steps=350)


@case(
    "signal-explodes", "units-saturated", "step-too-large", "gradient-explodes", source="mozilla/DeepSpeech issue 138"
)
def weights_of_deviation_one(fixed):
    """Asked: the loss is infinite or does not come down. Answer: weights drawn with deviation 1; 0.1 or less makes it
    converge."""
    train, held = sets.digits()
    model = mlp(64, 64, 64, 64, 10)
    model = he_(model) if fixed else normal_(model, 1.0)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=350)


@case(
    "units-saturated",
    "signal-explodes",
    "gradient-vanishes",
    "memorises-noise",
    "overfits",
    source="microsoft/AI-For-Beginners pull request 743; stats.stackexchange.com/questions/320289",
)
def tanh_drawn_too_wide(fixed):
    """Asked: a tanh network with weights from N(0, 1) trains erratically. Answer: with n inputs the sum has deviation sqrt(n),
    beyond where tanh has a slope; divide by it."""
    train, held = sets.clusters(4)
    model = mlp(16, 64, 64, 64, 4, act=nn.Tanh)
    model = xavier_(model) if fixed else normal_(model, 1.0)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=400)


@case(
    "units-alike",
    "layer-untrained",
    source="HomericIntelligence/Mnemosyne pull request 1987; nndl/nndl-discussion issue 14",
)
def all_weights_the_same(fixed):
    """Asked: the loss stays at the logarithm of the number of classes. Answer: weights filled with one value; units of a layer
    stay the same. Draw them."""
    train, held = sets.digits()
    model = mlp(64, 48, 48, 10)
    if not fixed:
        for p in model.parameters():
            nn.init.constant_(p, 0.01)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=300)


class _Gated(nn.Module):
    """Features that a branch of two layers adds to; the branch is what sees the second half of the inputs."""

    def __init__(self):
        super().__init__()
        self.trunk, self.branch, self.head = nn.Linear(8, 32), mlp(8, 32, 32), mlp(32, 32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.trunk(x[:, :8])) + self.branch(x[:, 8:]))


@case("units-alike", "layer-untrained", "gradient-vanishes", "layer-cut-off", source="yz93/LAVT-RIS issue 25")
def both_layers_of_a_branch_zero(fixed):
    """Asked: the gradient of a zero-initialized branch stays zero. Answer: two zero layers in a row never move; make only the
    last one zero."""
    train, held = sets.clusters(4, spread=1.2)
    model = _Gated()
    for layer in (model.branch[2],) if fixed else (model.branch[0], model.branch[2]):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=350)


@case(
    "units-dead",
    "inputs-merge",
    "layer-untrained",
    source="stats.stackexchange.com/questions/450100; linked0.gitbooks.io (dying ReLU)",
)
def units_dead_from_their_bias(fixed):
    """Asked: all features are positive and the hidden units start with negative weights or bias; is the unit dead for ever?
    Answer: yes; standardize the features, or leave a slope."""
    (x, y), (x_held, y_held) = sets.raw_digits()
    x, x_held = x / 16, x_held / 16
    model = mlp(64, 64, 10, act=nn.ReLU)
    with torch.no_grad():
        model[0].weight.uniform_(-0.05, 0.05 if fixed else 0.0)
        model[0].bias.zero_()
        if not fixed:
            model[0].weight[:2].abs_()
    return Run(model, (x, y), (x_held, y_held), F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=350)


@case(
    "layers-identical",
    source="zalandoresearch/pytorch-vq-vae issue 2; deep-learning-with-pytorch/dlwpt-code issue 89",
    costs_nothing="one block used four times learns digits as well as four blocks; it has a fourth of the weights",
)
def one_block_four_times(fixed):
    """Asked: [block] * n puts one and the same block into the list; is sharing meant? Answer: no, build each in a
    comprehension."""
    train, held = sets.digits()

    def block():
        return Residual(mlp(32, 32, 32))

    blocks = [block() for _ in range(4)] if fixed else [block()] * 4
    model = nn.Sequential(nn.Linear(64, 32), *blocks, nn.Linear(32, 10))
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=250)


@case("too-narrow", "loss-stalls", source="soumith/cvpr2015 issue 6; bold-lab-ai/JaxMARL issue 126")
def no_activation_between_layers(fixed):
    """Asked: linear layers follow each other without an activation. Answer: together they are one linear layer; put one between
    them."""
    train, held = sets.circles()
    model = mlp(2, 32, 32, 2, act=nn.ReLU if fixed else nn.Identity)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 5e-3), steps=300)


@case("too-narrow", "loss-stalls", source="discuss.pytorch.org t/13287")
def exclusive_or_by_a_linear_model(fixed):
    """Asked: a perceptron of two layers does not learn XOR. Answer: without a nonlinearity it is a linear model; add a ReLU."""
    g = torch.Generator().manual_seed(9)
    x = (torch.rand(700, 2, generator=g) < 0.5).float() + 0.1 * torch.randn(700, 2, generator=g)
    y = ((x[:, 0] > 0.5) != (x[:, 1] > 0.5)).float()[:, None]
    model = mlp(2, 16, 1, act=nn.ReLU if fixed else nn.Identity)
    pairs = (x[:400], y[:400]), (x[400:], y[400:])
    return Run(
        model,
        *pairs,
        F.binary_cross_entropy_with_logits,
        ADAM(model.parameters(), 0.02),
        steps=350,
        score=sign_accuracy,
    )


@case("too-narrow", "rank-lost", "loss-stalls", source="mozilla/DeepSpeech issue 311")
def too_few_hidden_units(fixed):
    """Asked: training error stays at 20 % however long it runs. Answer: the layers are too small for the task; widen them."""
    train, held = sets.digits()
    width = 48 if fixed else 2
    model = mlp(64, width, width, 10)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=500)


@case("inputs-merge", "labels-conflict", "loss-stalls", source="DaoyuanLi2816/Molecule-Generator pull request 23")
def attention_without_places(fixed):
    """Asked: the encoder cannot tell CCO from OCC. Answer: embedded symbols go into attention without their places; add a
    positional encoding."""
    train, held = sets.ordered()
    model = Transformer(10, 2, width=32, positions=fixed, pooled=True)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=400)


@case("gradient-explodes", "step-too-large", "weights-not-finite", source="Marcovaldong/lstmp.pytorch issue 2")
def recurrence_without_clipping(fixed):
    """Asked: the loss of a recurrent network over long rows turns to NaN after some hundred iterations. Answer: clip the
    gradient to norm 1."""
    train, held = sets.tones(length=40)
    model = Rnn(nn.RNN, 4, 32, 3, batch_first=True, nonlinearity="relu")
    with torch.no_grad():
        model.rnn.weight_hh_l0.copy_(1.15 * torch.eye(32))

    def step(run, x, y):
        run.model.train()
        run.optimizer.zero_grad()
        run.loss(run.model(x), y).backward()
        if fixed:
            nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
        run.optimizer.step()

    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.09), steps=400, step=step)


@case(
    "units-saturated",
    "signal-explodes",
    "gradient-vanishes",
    "inputs-not-scaled",
    source="stackoverflow.com/questions/46995209",
)
def wave_over_a_long_axis(fixed):
    """Asked: a tanh network does not fit a sine over a long axis. Answer: bring the input to -1 ... 1."""
    (x, y), (x_held, y_held) = sets.wave(2.5)
    factor = 1.0 if fixed else 120.0
    model = mlp(1, 48, 48, 1, act=nn.Tanh)
    pairs = (factor * x, y), (factor * x_held, y_held)
    return Run(model, *pairs, F.mse_loss, ADAM(model.parameters(), 5e-3), steps=700)


@case(source="jthickstun/pytorch_musicnet issue 4; wagonhelm/NaNmnist issue 2")
def linear_model_from_zero(fixed):
    """Asked: all weights begin at zero; is that not improper? Answer: not for a model of one layer, which has no symmetry to
    break."""
    train, held = sets.digits()
    model = nn.Linear(64, 10)
    if not fixed:
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.1), steps=300)


@case(source="emadeldeen24/TS-TCC issue 37")
def attention_that_needs_no_places(fixed):
    """Asked: there is no position encoding in the transformer. Answer: it was not needed here. The class is which of four
    symbols is in the row."""
    g = torch.Generator().manual_seed(11)
    x = torch.randint(4, 10, (1500, 10), generator=g)
    y = torch.randint(4, (1500,), generator=g)
    x[torch.arange(1500), torch.randint(10, (1500,), generator=g)] = y
    model = Transformer(10, 4, layers=1, positions=fixed, pooled=True)
    pairs = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=200)
