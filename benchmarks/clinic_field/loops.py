"""Questions whose answer was in the training loop: what is cleared, what is stepped, what the optimizer holds."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import sets
from .case import Run, case, plain_step
from .parts import Rnn, cnn, mlp

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


def _loop(*order: str):
    """A step made of these calls, in this order."""

    def step(run: Run, x: Tensor, y: Tensor) -> None:
        run.model.train()
        for call in order:
            if call == "backward":
                run.loss(run.model(x), y).backward()
            elif call == "clear":
                run.optimizer.zero_grad()
            elif call == "step":
                run.optimizer.step()

    return step


@case(
    "gradient-accumulates",
    "step-too-large",
    source="snakers4/silero-vad pull request 699; fchollet/deep-learning-with-python-notebooks issue 293",
)
def never_cleared(fixed):
    """Asked: the results of a hand-written train_step are terrible. Answer: zero_grad is missing before backward."""
    train, held = sets.digits()
    model = mlp(64, 48, 10)
    step = None if fixed else _loop("backward", "step")
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.1), steps=300, step=step)


@case(
    "gradient-accumulates",
    "step-too-large",
    source="wenet-e2e/wekws pull request 73; tenstorrent/tt-blacksmith pull request 711",
)
def never_cleared_with_adam(fixed):
    """Asked: in the training stage step is called and zero_grad is not. Answer: it belongs above backward."""
    train, held = sets.friedman()
    model = mlp(10, 48, 48, 1)
    step = None if fixed else _loop("backward", "step")
    return Run(model, train, held, F.mse_loss, ADAM(model.parameters(), 3e-3), steps=400, step=step)


@case("gradient-accumulates", "step-too-large", source="pytorch/pytorch issue 47175")
def cleared_once_a_pass(fixed):
    """Asked: zero_grad stands at the beginning of the epoch; a warning would help. Answer: it belongs into each iteration."""
    train, held = sets.images()
    model = cnn()
    calls = [0]

    def step(run, x, y):
        run.model.train()
        if calls[0] % (1300 // 32) == 0:
            run.optimizer.zero_grad()
        calls[0] += 1
        run.loss(run.model(x), y).backward()
        run.optimizer.step()

    optimizer = SGD(model.parameters(), 0.1)
    return Run(model, train, held, F.cross_entropy, optimizer, steps=300, step=None if fixed else step)


@case(
    "gradient-cleared",
    "layer-untrained",
    "loss-stalls",
    "step-too-small",
    source="xiaobeizi.cn/x/6iuujguWdu (stackoverflow); velog.io/@rhss10",
)
def cleared_between_backward_and_step(fixed):
    """Asked: where does zero_grad go? Answer: anywhere but between backward and step, where it throws the gradient away."""
    train, held = sets.friedman()
    model = mlp(10, 32, 1)
    step = None if fixed else _loop("backward", "clear", "step")
    return Run(model, train, held, F.mse_loss, SGD(model.parameters(), 0.1), steps=300, step=step)


@case("step-without-effect", "layer-untrained", "loss-stalls", "step-too-small", source="pytorch/pytorch issue 3814")
def scheduler_in_place_of_optimizer(fixed):
    """Asked: nothing works, and weights are the same after every step; scheduler.step() was taken to step the optimizer.
    Answer: call both."""
    train, held = sets.digits()
    model = mlp(64, 48, 10)
    step = plain_step if fixed else _loop("clear", "backward")
    return Run(
        model,
        train,
        held,
        F.cross_entropy,
        ADAM(model.parameters(), 2e-3),
        steps=300,
        step=step,
        schedule=lambda i: 0.998**i,
    )


@case(
    "optimizer-of-another",
    "not-in-optimizer",
    "layer-untrained",
    source="microsoft/nni issue 4521; pytorch/pytorch issue 54765",
)
def optimizer_of_the_layers_before(fixed):
    """Asked: after layers were replaced by smaller ones, fine-tuning changes nothing. Answer: the optimizer holds the old
    parameters; make it anew."""
    train, held = sets.digits()
    model = mlp(64, 64, 64, 10)
    old = ADAM(model.parameters(), 2e-3)
    model[0], model[2], model[4] = nn.Linear(64, 24), nn.Linear(24, 24), nn.Linear(24, 10)
    optimizer = ADAM(model.parameters(), 2e-3) if fixed else old
    return Run(model, train, held, F.cross_entropy, optimizer, steps=300)


@case(
    "optimizer-of-another",
    "not-in-optimizer",
    "layer-untrained",
    source="pytorch/pytorch issue 54765; automl/ConfigurableOptimizer issue 27",
)
def convolution_made_anew(fixed):
    """Asked: a new convolution with more filters takes the place of the old one; how does the optimizer learn of it? Answer: it
    does not; make it anew."""
    train, held = sets.images()
    model = cnn()
    old = SGD(model.parameters(), 0.01, momentum=0.9)
    model[3] = nn.Conv2d(8, 16, 3, padding=1)
    nn.init.normal_(model[3].weight, std=0.005)
    model[0] = nn.Conv2d(1, 8, 3, padding=1)
    optimizer = SGD(model.parameters(), 0.01, momentum=0.9) if fixed else old
    return Run(model, train, held, F.cross_entropy, optimizer, steps=350)


class _Listed(nn.Module):
    """Hidden layers in a list of Python's, or of torch's."""

    def __init__(self, registered: bool, depth: int = 5, width: int = 24):
        super().__init__()
        layers = [nn.Linear(64 if i == 0 else width, width) for i in range(depth)]
        self.layers = nn.ModuleList(layers) if registered else layers
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x)


@case(
    "not-in-optimizer",
    "frozen-by-mistake",
    "layer-untrained",
    "layer-cut-off",
    source="pytorch/pytorch issues 715, 666 and 1053",
)
def layers_in_a_python_list(fixed):
    """Asked: layers appended to a list are not among the parameters. Answer: expected; wrap them in nn.ModuleList."""
    train, held = sets.digits()
    model = _Listed(registered=fixed)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=300)


class _Graph(nn.Module):
    """Nodes of a sample weighed by a learned similarity; the similarity may be cut off."""

    def __init__(self, detached: bool):
        super().__init__()
        self.query, self.key, self.value, self.head = (
            nn.Linear(4, 16),
            nn.Linear(4, 16),
            nn.Linear(4, 16),
            nn.Linear(16, 3),
        )
        self.detached = detached

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.query(x[:, -1:]) @ self.key(x).transpose(1, 2)).softmax(-1)
        if self.detached:
            weights = weights.detach()
        return self.head(torch.tanh(weights @ self.value(x)).squeeze(1))


@case("layer-cut-off", "layer-untrained", source="queenie88/A-GCN issue 4")
def learned_graph_detached(fixed):
    """Asked: the adjacency is detached; how could its two weight matrices be learned? Answer: they could not; the detach was
    forgotten and is removed."""
    g = torch.Generator().manual_seed(12)
    n = 1500
    x = torch.randn(n, 8, 4, generator=g)
    place = torch.randint(7, (n,), generator=g)
    x[:, :, 0] = 0.0
    x[torch.arange(n), place, 0] = 4.0  # the node that is marked says the class
    y = (x[torch.arange(n), place, 1] * 2).round().clamp(-1, 1).long() + 1
    model = _Graph(detached=not fixed)
    pairs = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 1e-2), steps=400)


class _FrontEnd(nn.Module):
    """A filter bank whose constraint may run without gradients."""

    def __init__(self, kept: bool):
        super().__init__()
        self.kernel = nn.Parameter(0.5 * torch.randn(6, 4, 5))
        self.head, self.kept = mlp(6 * 10, 32, 3), kept

    def forward(self, x: Tensor) -> Tensor:
        if self.kept:
            kernel = self.kernel.clamp(-2, 2)
        else:
            with torch.no_grad():
                kernel = self.kernel.clamp(-2, 2)
        return self.head(F.relu(F.conv1d(x.transpose(1, 2), kernel, stride=2)).flatten(1))


@case(
    "layer-cut-off",
    "layer-untrained",
    source="denfed/leaf-audio-pytorch issue 3",
    costs_nothing="random filters serve this task nearly as well as trained ones",
)
def constraint_without_gradients(fixed):
    """Asked: the weights of the convolution do not change; its constraint stands under torch.no_grad. Answer: take it out from
    there and they do."""
    train, held = sets.tones()
    model = _FrontEnd(kept=fixed)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=300)


def _in_eval(run: Run, x: Tensor, y: Tensor) -> None:
    run.model.eval()
    run.optimizer.zero_grad()
    run.loss(run.model(x), y).backward()
    run.optimizer.step()


@case(
    "trained-as-evaluated",
    "overfits",
    "memorises-noise",
    source="facebookresearch/clevr-iep pull request 22; wkentaro/pytorch-fcn pull request 56",
)
def never_back_to_training_mode(fixed):
    """Asked: after the first validation the model is never set back to train. Answer: set it back; dropout and batch
    normalization are off until then."""
    (x, y), held = sets.clusters(4)
    x, y = x[:250], sets.with_mistakes(y[:250], 4)
    model = nn.Sequential(
        nn.Linear(16, 256),
        nn.ReLU(),
        nn.Dropout(0.7),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(0.7),
        nn.Linear(256, 4),
    )
    optimizer = ADAM(model.parameters(), 1e-3)
    return Run(model, (x, y), held, F.cross_entropy, optimizer, steps=200, step=plain_step if fixed else _in_eval)


@case("trained-as-evaluated", "signal-explodes", "step-too-large", "statistics-differ", source="fartashf/vsepp issue 4")
def batch_norm_in_evaluation_mode(fixed):
    """Asked: validation leaves the model in evaluation mode; do dropout and batch normalization stay off? Answer: yes, until the
    next epoch; a fix was made and changes results noticeably."""
    (x, y), (x_held, y_held) = sets.images()
    layers = []
    for i in range(6):
        layers += [nn.Conv2d(1 if i == 0 else 8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10))
    optimizer = SGD(model.parameters(), 0.1, momentum=0.9)
    step = plain_step if fixed else _in_eval
    return Run(model, (x, y), (x_held, y_held), F.cross_entropy, optimizer, steps=200, step=step)


@case(source="tk-rusch/coRNN issue 1")
def evaluation_mode_without_effect(fixed):
    """Asked: train() is not called again after eval(). Answer: the network has neither dropout nor batch normalization, so the
    outcome is the same."""
    train, held = sets.tones()
    model = Rnn(nn.GRU, 4, 24, 3, batch_first=True)
    step = plain_step if fixed else _in_eval
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-2), steps=200, step=step)


class _Kept(nn.Module):
    """A layer whose weight is a tensor with a gradient, but no parameter, and one that is as it should be."""

    def __init__(self, parameter: bool):
        super().__init__()
        weight = torch.randn(64, 24) / 64
        self.weight = nn.Parameter(weight) if parameter else weight.requires_grad_()
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        return self.head((x @ self.weight).tanh())


@case("not-in-optimizer", "layer-untrained", "frozen-by-mistake", source="docs.pytorch.org, nn.Parameter")
def tensor_that_is_no_parameter(fixed):
    """Asked: a weight made by randn with requires_grad does not change. Answer: only an nn.Parameter is in parameters()."""
    train, held = sets.digits()
    model = _Kept(fixed)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.05, momentum=0.9), steps=150)
