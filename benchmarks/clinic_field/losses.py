"""Questions whose answer was the loss, or what stands between the last layer and the loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import sets
from .case import Run, balanced_accuracy, case, explained, outputs
from .parts import Vae, cnn, mlp

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


@case("loss-mismatched", "outputs-squashed", source="Lightning-Universe/lightning-bolts issue 654")
def softmax_before_cross_entropy(fixed):
    """Asked: a logistic regression takes softmax in forward and cross_entropy as loss; is that twice? Answer: yes, give the
    loss raw scores."""
    train, held = sets.digits()
    model = mlp(64, 10, end=None if fixed else nn.Softmax(-1))
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.05), steps=300)


@case(
    "loss-mismatched", "outputs-squashed", source="discuss.pytorch.org t/43814 (Cross Entropy loss is not decreasing)"
)
def softmax_before_cross_entropy_in_a_cnn(fixed):
    """Asked: the loss of a small convolutional network stays near that of guessing. Answer: softmax was handed to
    CrossEntropyLoss; take it out."""
    train, held = sets.images()
    model = nn.Sequential(*cnn(), *([] if fixed else [nn.Softmax(-1)]))
    return Run(model, train, held, nn.CrossEntropyLoss(), SGD(model.parameters(), 0.05, momentum=0.5), steps=400)


@case(
    "loss-mismatched", "outputs-squashed", source="yudi-mars/daisyRec pull request 15; avBuffer/UNet3plus_pth issue 23"
)
def sigmoid_before_bce_with_logits(fixed):
    """Asked: a recommender's loss does not converge. Answer: BCEWithLogitsLoss has a sigmoid inside; do not put one before it.
    Scored by how far the stated probabilities gain over the base rate."""
    g = torch.Generator().manual_seed(18)
    x = torch.randn(1400, 8, generator=g)
    odds = 6 * (x[:, :1] * x[:, 1:2] + x[:, 2:3])
    y = (torch.rand(1400, 1, generator=g) < odds.sigmoid()).float()
    train, held = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    model = mlp(8, 24, 1, end=None if fixed else nn.Sigmoid())

    def gain(run):
        said, y = outputs(run), run.validation[1]
        chosen = (said if not fixed else said.sigmoid()).clamp(1e-3, 1 - 1e-3)
        rate = y.mean().expand_as(y)
        return max(0.0, float(1 - F.binary_cross_entropy(chosen, y) / F.binary_cross_entropy(rate, y)))

    optimizer = ADAM(model.parameters(), 5e-3)
    return Run(model, train, held, nn.BCEWithLogitsLoss(), optimizer, score=gain, chance=0.0, steps=300)


@case(
    "loss-mismatched",
    source="AnubhavGupta3377/Text-Classification-Models-Pytorch issue 9; clvrai/ACGAN-PyTorch issue 3",
)
def nll_of_probabilities(fixed):
    """Asked: the loss of a classifier is always negative. Answer: NLLLoss wants log-probabilities and the model ends in a
    plain softmax; use log_softmax."""
    train, held = sets.digits()
    model = mlp(64, 48, 48, 10, end=nn.LogSoftmax(-1) if fixed else nn.Softmax(-1))
    return Run(model, train, held, nn.NLLLoss(), SGD(model.parameters(), 0.1), steps=300)


@case("loss-mismatched", "gradient-explodes", "step-too-large", source="pytorch/pytorch pull request 12703")
def nll_of_raw_scores(fixed):
    """Asked: the example's NLLLoss goes below zero. Answer: a LogSoftmax is missing between the last layer and NLLLoss."""
    train, held = sets.clusters(4)
    model = mlp(16, 32, 4, end=nn.LogSoftmax(-1) if fixed else None)
    return Run(model, train, held, nn.NLLLoss(), ADAM(model.parameters(), 3e-3), steps=400)


def _all_pairs(output: Tensor, target: Tensor) -> Tensor:
    """What mean squares of (n, 1) and (n,) come to: every output against every target."""
    return ((output - target.reshape(1, -1)) ** 2).mean()


@case("loss-mismatched", source="pytorch/pytorch issue 16045")
def targets_broadcast_in_a_line(fixed):
    """Asked: a linear regression with two features does not find its coefficients; loss does not come down. Answer: predictions
    are (n, 1) and targets (n,); reshape the targets."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(300, 2, generator=g)
    y = (10 + 9 * x[:, :1] - 2 * x[:, 1:] + torch.randn(300, 1, generator=g)) / 3
    model = nn.Linear(2, 1)
    loss = F.mse_loss if fixed else _all_pairs
    return Run(model, (x[:200], y[:200]), (x[200:], y[200:]), loss, SGD(model.parameters(), 0.1), batch=100, steps=300)


@case("loss-mismatched", source="LAMDA-Tabular/TALENT pull request 92; discuss.pytorch.org t/148155")
def targets_broadcast_in_a_table(fixed):
    """Asked: a tabular network trains without error and predicts the mean. Answer: the loss compared (n, 1) with (n,) and
    broadcast; give both one shape."""
    train, held = sets.friedman()
    model = mlp(10, 48, 48, 1)
    return Run(model, train, held, F.mse_loss if fixed else _all_pairs, ADAM(model.parameters(), 2e-3), steps=400)


@case("outputs-squashed", "units-dead", source="ProteomicsML/ProteomicsML pull request 203")
def relu_after_the_last_layer(fixed):
    """Asked: a recurrent regression returns 0 for all of validation. Answer: a ReLU after the final linear layer; leave it
    out."""
    (x, y), (x_held, y_held) = sets.friedman()
    model = mlp(10, 32, 32, 1, end=None if fixed else nn.ReLU())
    return Run(model, (x, y), (x_held, y_held), F.mse_loss, ADAM(model.parameters(), 3e-3), steps=400)


@case("units-dead", "outputs-squashed", "layer-untrained", source="jvargasmu/population_estimation issue 68")
def relu_output_dead_at_the_start(fixed):
    """Asked: sometimes the first solution predicts only zeros and no gradient appears. Answer: the ReLU of the output; use
    softplus."""
    (x, y), (x_held, y_held) = sets.friedman()
    y, y_held = (y + 2.5).clamp_min(0.0), (y_held + 2.5).clamp_min(0.0)
    model = mlp(10, 32, 1, end=nn.Softplus() if fixed else nn.ReLU())
    with torch.no_grad():
        model[-2].bias.fill_(-2.0)
    return Run(model, (x, y), (x_held, y_held), F.mse_loss, ADAM(model.parameters(), 3e-3), steps=500)


@case("outputs-squashed", "targets-not-scaled", source="stackoverflow.com/questions/46995209")
def tanh_output_for_larger_targets(fixed):
    """Asked: a small network with tanh throughout does not fit a wave that reaches beyond one. Answer: scale the targets to
    what the last activation can give."""
    (x, y), (x_held, y_held) = sets.wave(2.0)
    y, y_held = (0.4 * y, 0.4 * y_held) if fixed else (3 * y, 3 * y_held)
    model = mlp(1, 48, 48, 1, act=nn.Tanh, end=nn.Tanh())
    return Run(model, (x, y), (x_held, y_held), F.mse_loss, ADAM(model.parameters(), 5e-3), steps=700)


@case("loss-mismatched", source="datascience.stackexchange.com/questions/38604")
def one_output_for_ten_classes(fixed):
    """Asked: a network with one sigmoid output and binary cross-entropy stays at 11 % on ten digits. Answer: ten outputs and a
    cross-entropy over classes."""
    (x, y), (x_held, y_held) = sets.digits()
    if fixed:
        model = mlp(64, 64, 10)
        return Run(model, (x, y), (x_held, y_held), F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=400)
    model = mlp(64, 64, 1)

    def rounded(run):
        return float((outputs(run).sigmoid().round().long()[:, 0] == run.validation[1][:, 0].long()).float().mean())

    pairs = (x, y[:, None].float()), (x_held, y_held[:, None].float())
    loss = F.binary_cross_entropy_with_logits
    return Run(model, *pairs, loss, ADAM(model.parameters(), 1e-3), steps=400, score=rounded, chance=0.1)


@case("loss-mismatched", "classes-unbalanced", source="amanshenoy/multilogue-net issue 21")
def class_weights_the_wrong_way_round(fixed):
    """Asked: are the weights of the loss in the wrong order, the common class with the larger one? Answer: yes, flip them."""
    (x, y), (x_held, y_held) = sets.clusters(2, spread=1.3, samples=1500)
    kept = (y == 0) | (torch.arange(len(y)) % 8 == 0)
    weight = torch.tensor([1 / 0.9, 1 / 0.1] if fixed else [1 / 0.1, 1 / 0.9])
    model = mlp(16, 32, 2)
    loss = nn.CrossEntropyLoss(weight=weight)
    run = Run(model, (x[kept], y[kept]), (x_held, y_held), loss, ADAM(model.parameters(), 2e-3), steps=300)
    run.score = balanced_accuracy
    return run


def _negated(output: Tensor, target: Tensor) -> Tensor:
    return -F.mse_loss(output, target)


@case("loss-mismatched", "gradient-explodes", "step-too-large", source="nothinglo/Deep-Photo-Enhancer issue 57")
def loss_with_the_wrong_sign(fixed):
    """Asked: neither training nor test loss comes down. Answer: the loss carries a minus, so that it is driven up; take it
    away."""
    train, held = sets.friedman()
    model = mlp(10, 32, 1)
    return Run(model, train, held, F.mse_loss if fixed else _negated, ADAM(model.parameters(), 2e-3), steps=300)


@case(
    "loss-mismatched",
    "samples-mixed",
    source="batra-mlp-lab/visdial-challenge-starter-pytorch issue 1",
    costs_nothing="batches of like classes make up for it: the largest score is still that of the right class",
)
def log_softmax_over_the_batch(fixed):
    """Asked: the decoder takes log-softmax along dimension 0 of (batch, options); is that meant? Answer: no, dimension 1."""
    train, held = sets.digits()
    model = mlp(64, 48, 10, end=nn.LogSoftmax(dim=1 if fixed else 0))
    return Run(model, train, held, F.nll_loss, SGD(model.parameters(), 0.1), batch=16, steps=300)


def _vae_loss(weight: float):
    def loss(output, target):
        said, mean, log_variance = output
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(-1).mean()
        return F.mse_loss(said, target) + weight * divergence

    return loss


@case(
    "posterior-collapsed",
    source="luigibonati/mlcolvar pull request 188; AppliedDataSciencePartners/WorldModels issue 12",
)
def code_of_a_vae_collapses(fixed):
    """Asked: reconstructions are all the same and the divergence goes to zero. Answer: squares are averaged over pixels, so the
    divergence outweighs them; weight it down."""
    (x, _), (x_held, _) = sets.digits()
    model = Vae()
    loss = _vae_loss(0.003 if fixed else 1.0)
    optimizer = ADAM(model.parameters(), 3e-3)
    return Run(model, (x, x), (x_held, x_held), loss, optimizer, batch=64, steps=500, score=explained)


class _Contrast(nn.Module):
    """Two views in a row of features; gives the cosines of every first with every second view, times a scale."""

    def __init__(self, scale: float):
        super().__init__()
        self.encode, self.scale = mlp(32, 64, 16), scale

    def forward(self, x: Tensor) -> Tensor:
        first, second = (F.normalize(self.encode(part), dim=-1) for part in x.chunk(2, dim=-1))
        return self.scale * first @ second.T


def _matching(logits: Tensor, _: Tensor) -> Tensor:
    return F.cross_entropy(logits, torch.arange(len(logits)))


@case("temperature-off", "outputs-squashed", source="huggingface/transformers issue 13430")
def contrast_without_a_temperature(fixed):
    """Asked: a model of matching pairs is trained with a logit scale that starts at the logarithm's wrong value, and its loss
    does not come down. Answer: cosines need a scale of 1 / 0.07. Scored by the share of pairs that are found."""
    g = torch.Generator().manual_seed(7)
    hidden = torch.randn(1400, 8, generator=g)
    views = [
        torch.tanh(hidden @ torch.randn(8, 32, generator=g)) + 0.2 * torch.randn(1400, 32, generator=g) for _ in "ab"
    ]
    x, y = torch.cat(views, -1), torch.arange(1400)
    model = _Contrast(1 / 0.07 if fixed else 0.07)

    def found(run):
        return float((outputs(run).argmax(-1) == torch.arange(len(run.validation[0]))).float().mean())

    pairs = (x[:1200], y[:1200]), (x[1200:], y[1200:])
    return Run(
        model, *pairs, _matching, ADAM(model.parameters(), 2e-3), batch=64, steps=500, score=found, chance=1 / 200
    )


class _Cells(nn.Module):
    """At each cell of an image whether something bright is there, and where in the cell."""

    def __init__(self, squash: bool) -> None:
        super().__init__()
        self.squash = squash
        self.layers = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 3, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        out = self.layers(x)
        return torch.cat([out[:, :1].sigmoid(), out[:, 1:]], 1) if self.squash else out


def _there_and_where(out: Tensor, y: Tensor) -> Tensor:
    where = ((out[:, 1:] - y[:, 1:]).square().sum(1) * y[:, 0]).sum() / y[:, 0].sum().clamp_min(1)
    return F.binary_cross_entropy_with_logits(out[:, 0], y[:, 0]) + where


@case("outputs-squashed", "loss-mismatched", source="argusswift/YOLOv4-pytorch issue 89; Turoad/lanedet issue 32")
def sigmoid_on_a_detector(fixed):
    """Asked: the head of a detector takes a sigmoid of its confidence, and the loss is BCEWithLogitsLoss; is that twice?
    Answer: yes, leave it out of the head. Scored by F1 over cells."""
    g = torch.Generator().manual_seed(19)
    n, k = 900, torch.arange(16.0)
    x, y = 0.3 * torch.randn(n, 1, 16, 16, generator=g), torch.zeros(n, 3, 4, 4)
    at = 16 * torch.rand(n, 2, generator=g)
    near = (k[:, None] - at[:, 1, None, None]) ** 2 + (k - at[:, 0, None, None]) ** 2
    x[:, 0] += torch.exp(-near / 4)
    cell = (at / 4).long()
    y[torch.arange(n), :, cell[:, 1], cell[:, 0]] = torch.cat([torch.ones(n, 1), at / 4 - cell - 0.5], 1)

    def f1(run):
        said, there = outputs(run)[:, 0] > (0.0 if fixed else 0.5), run.validation[1][:, 0] > 0.5
        return float(2 * (said & there).sum() / (said.sum() + there.sum()))

    model = _Cells(not fixed)
    pairs = (x[:700], y[:700]), (x[700:], y[700:])
    return Run(model, *pairs, _there_and_where, ADAM(model.parameters(), 4e-3), steps=350, score=f1, chance=0.12)


@case(source="giannisnik/repset issue 1; keon/3-min-pytorch issue 19")
def log_softmax_before_cross_entropy(fixed):
    """Asked: log_softmax is followed by cross_entropy; does that hurt? Answer: no, log_softmax twice is log_softmax."""
    train, held = sets.digits()
    model = mlp(64, 48, 10, end=None if fixed else nn.LogSoftmax(-1))
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=250)


@case("outputs-squashed", "targets-not-scaled", source="stackoverflow.com/questions/44601367")
def sigmoid_under_targets_of_three(fixed):
    """Asked: an autoencoder of rows such as 1, 2, 3 answers with numbers below one. Answer: a sigmoid cannot reach them; no
    activation on the decoder."""
    g = torch.Generator().manual_seed(44)
    z = torch.rand(700, 2, generator=g)
    x = torch.stack([1 + z[:, 0], 2 + z[:, 1] - 0.5 * z[:, 0], 3 - z[:, 1], 2 + z[:, 0] - z[:, 1]], 1)
    model = mlp(4, 8, 2, 8, 4, act=nn.Tanh, end=None if fixed else nn.Sigmoid())
    return Run(model, (x[:450], x[:450]), (x[450:], x[450:]), F.mse_loss, ADAM(model.parameters(), 1e-2), steps=900)


@case("outputs-squashed", "loss-mismatched", source="stackoverflow.com/questions/44164749")
def several_labels_under_one_softmax(fixed):
    """Asked: how are several labels a sample predicted? Answer: not by a softmax, which lets one label up by taking the others
    down; a sigmoid each, with binary cross-entropy."""
    g = torch.Generator().manual_seed(45)
    x = torch.randn(1600, 20, generator=g)
    y = (x @ torch.randn(20, 8, generator=g) + 1.5 > 0).float()
    model = mlp(20, 64, 8, end=nn.Sigmoid() if fixed else nn.Softmax(-1))
    optimizer = ADAM(model.parameters(), 3e-3)
    pairs = (x[:1200], y[:1200]), (x[1200:], y[1200:])
    chance = float(y[1200:].mean())
    return Run(model, *pairs, F.binary_cross_entropy, optimizer, steps=600, score=_labels_right, chance=chance)


@torch.no_grad()
def _labels_right(run: Run) -> float:
    return float(((outputs(run) > 0.5) == (run.validation[1] > 0.5)).float().mean())


def _of_their_sum(output: Tensor, target: Tensor) -> Tensor:
    """A cross-entropy that divides outputs by their sum first."""
    return -(target * (output / output.sum(-1, keepdim=True)).clamp(1e-7, 1).log()).sum(-1).mean()


@case("loss-mismatched", "layer-cut-off", "gradient-vanishes", source="getcodesolution.com (stackoverflow)")
def cross_entropy_of_classes_on_one_output(fixed):
    """Asked: one output for zeros and ones under a cross-entropy of classes: why is nothing learned? Answer: that loss wants one
    column a class; squares, or the binary one."""
    (x, y), (x_held, y_held) = sets.circles()
    model = mlp(2, 16, 1, end=nn.Sigmoid())
    pairs = (x, y[:, None].float()), (x_held, y_held[:, None].float())
    loss = F.binary_cross_entropy if fixed else _of_their_sum
    return Run(model, *pairs, loss, ADAM(model.parameters(), 1e-2), steps=500, score=_labels_right, chance=0.5)


@case(
    "loss-mismatched",
    "targets-not-scaled",
    source="huanglianghua/siamfc-pytorch issue 37; tensorflow/tensorflow issue 71638",
)
def binary_labels_of_one_and_two(fixed):
    """Asked: the binary cross-entropy goes far below zero and all is one class. Answer: labels must be 0 and 1, not 1 and 2."""
    (x, y), (x_held, y_held) = sets.circles()
    first = 0.0 if fixed else 1.0
    model = mlp(2, 24, 1)

    def right(run):
        return float(((outputs(run) > 0) == (run.validation[1] > first)).float().mean())

    pairs = (x, y[:, None] + first), (x_held, y_held[:, None] + first)
    loss, optimizer = F.binary_cross_entropy_with_logits, ADAM(model.parameters(), 1e-2)
    return Run(model, *pairs, loss, optimizer, steps=400, score=right, chance=0.5)


@case("regularised-too-hard", "statistics-differ", "outputs-squashed", source="stackoverflow.com/questions/74181228")
def dropout_behind_the_last_layer(fixed):
    """Asked: which layer does a dropout belong to? Answer: to the one before it; behind the last it drops the answer itself."""
    (x, y), (x_held, y_held) = sets.friedman()
    model = mlp(10, 48, 48, 1, end=None if fixed else nn.Dropout(0.5))
    return Run(model, (x, y + 2), (x_held, y_held + 2), F.mse_loss, ADAM(model.parameters(), 2e-3), steps=600)
