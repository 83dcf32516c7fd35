"""Questions whose answer was in the data: its scale, its order, its labels, how it was split."""

import torch
from torch import nn
from torch.nn import functional as F

from . import sets
from .case import Run, accuracy, balanced_accuracy, case, outputs
from .parts import Call, cnn, mlp

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


@case(
    "inputs-not-scaled",
    "step-too-large",
    source="keras-team/keras issues 6447 and 13891; hill-a/stable-baselines issue 328",
)
def pixels_from_0_to_255(fixed):
    """Asked: the network gives the same answer for every image. Answer: pixels were left between 0 and 255; scale them
    first."""
    (x, y), (x_held, y_held) = sets.raw_digits()
    x, x_held = (x / 16, x_held / 16) if fixed else (x * 16, x_held * 16)
    model = mlp(64, 64, 32, 10)
    return Run(model, (x, y), (x_held, y_held), F.cross_entropy, SGD(model.parameters(), 0.1, momentum=0.5), steps=500)


@case("inputs-not-scaled", "step-too-large", source="chaoqing's comment in keras-team/keras issue 6447")
def features_in_their_own_units(fixed):
    """Asked: a table of measurements in raw units is predicted as one class. Answer: scale the columns."""
    train, held = sets.wine() if fixed else sets.raw_wine()
    model = mlp(13, 16, 3)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.05), batch=16, steps=300)


@case(
    "inputs-not-scaled",
    "step-too-large",
    "targets-not-scaled",
    "weights-not-finite",
    source="mejorcodigo.com/p/45698 (stackoverflow)",
)
def line_over_a_hundred_times_the_range(fixed):
    """Asked: gradient descent on a line works for x below 1 and gives NaN for x up to 100. Answer: rescaling the data rescales
    the step; scale x."""
    g = torch.Generator().manual_seed(1)
    x = torch.rand(500, 1, generator=g)
    y = 5 * x + 3 + 0.1 * torch.randn(500, 1, generator=g)
    if not fixed:
        x = 100 * x
    model = nn.Linear(1, 1)
    return Run(
        model, (x[:350], y[:350]), (x[350:], y[350:]), F.mse_loss, SGD(model.parameters(), 0.1), batch=350, steps=600
    )


@case(
    "targets-not-scaled",
    "inputs-not-scaled",
    "step-too-small",
    "trained-too-short",
    source="discuss.pytorch.org t/96648",
)
def cubes_of_thousands(fixed):
    """Asked: a network of one hidden layer cannot learn x cubed for x up to 4,000. Answer: normalize inputs and targets."""
    x = torch.arange(1.0, 4000.0)[:, None]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))
    x = x[order]
    y = x**3
    if fixed:
        x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    model = mlp(1, 50, 1)
    return Run(
        model,
        (x[:1500], y[:1500]),
        (x[1500:2500], y[1500:2500]),
        F.mse_loss,
        ADAM(model.parameters(), 3e-3),
        batch=64,
        steps=500,
    )


@case(
    "targets-not-scaled",
    "step-too-large",
    "gradient-explodes",
    "weights-not-finite",
    source="stats.stackexchange.com/questions/418955",
)
def squares_left_as_they_are(fixed):
    """Asked: two layers on normalized x diverge for y = x squared + 3 with x from 0 to 99. Answer: the target is not
    scaled."""
    x = torch.arange(100.0)[:, None]
    y = x**2 + 3
    x = (x - x.mean()) / x.std()
    if fixed:
        y = (y - y.mean()) / y.std()
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    model = mlp(1, 16, 1, act=nn.Tanh)
    return Run(model, (x[:70], y[:70]), (x[70:], y[70:]), F.mse_loss, SGD(model.parameters(), 0.1), batch=16, steps=600)


@case("targets-not-scaled", "step-too-small", "trained-too-short", source="DeepRank/deeprank issue 16")
def targets_far_from_zero(fixed):
    """Asked: without normalized targets every prediction is the same value. Answer: normalize the targets."""
    (x, y), (x_held, y_held) = sets.friedman()
    if not fixed:
        y, y_held = 300 + 60 * y, 300 + 60 * y_held
    model = mlp(10, 32, 1)
    return Run(model, (x, y), (x_held, y_held), F.mse_loss, ADAM(model.parameters(), 3e-3), steps=400)


@case(
    "inputs-not-finite", "weights-not-finite", source="danielegrattarola/keras-gat issue 14; circleAhn/TESLA-tf issue 1"
)
def missing_values_among_the_features(fixed):
    """Asked: the loss is NaN from the first epoch. Answer: the features hold NaN; fill them before training."""
    (x, y), held = sets.clusters(4)
    x = x.clone()
    x[::50, 3] = float("nan")
    if fixed:
        x = torch.nan_to_num(x)
    model = mlp(16, 32, 4)
    return Run(model, (x, y), held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=300)


@case("inputs-not-finite", "weights-not-finite", source="google-deepmind/deepmind-research issue 346")
def normalized_by_no_deviation(fixed):
    """Asked: NaN in the very first iteration after a feature was normalized. Answer: its deviation comes out as nothing, and
    the division is what gives NaN; guard it."""
    (x, y), (x_held, y_held) = sets.raw_digits()
    spread, mean = x.std(0), x.mean(0)
    if fixed:
        spread = spread.clamp_min(1.0)
    model = mlp(64, 48, 10)
    pairs = ((x - mean) / spread, y), ((x_held - mean) / spread, y_held)
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=250)


@case("labels-unrelated", "memorises-noise", source="xudonmao/VMT issue 1")
def labels_shuffled_apart_from_inputs(fixed):
    """Asked: two calls of shuffle permute images and labels differently; is that right? Answer: no, one permutation for both,
    after which results improve."""
    (x, y), held = sets.digits()
    if not fixed:
        y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(3))]
    model = mlp(64, 64, 10)
    return Run(model, (x, y), held, F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=400)


@case("labels-unrelated", "memorises-noise", source="tensorflow/tensorflow issue 21033")
def faces_with_labels_of_other_faces(fixed):
    """Asked: after batching and shuffling again some faces carry the label of no face. Answer: the second queue shuffles them
    apart; batch once."""
    (x, y), (x_held, y_held) = sets.images()
    y, y_held = (y < 5).long(), (y_held < 5).long()
    if not fixed:
        mixed = torch.randperm(len(y), generator=torch.Generator().manual_seed(4))
        y = torch.where(torch.arange(len(y)) % 10 < 9, y[mixed], y)
    model = cnn(classes=2)
    return Run(model, (x, y), (x_held, y_held), F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=300)


@case("batch-noise", "loss-stalls", "overfits", source="Deci-AI/super-gradients issue 416")
def classes_one_after_another(fixed):
    """Asked: training falls out of its minimum; the loader does not shuffle by default, so that each batch holds one class.
    Answer: pass shuffle=True."""
    (x, y), held = sets.digits()
    order = y.argsort(stable=True)
    model = mlp(64, 48, 10)
    optimizer = SGD(model.parameters(), 0.05, momentum=0.9)
    return Run(model, (x[order], y[order]), held, F.cross_entropy, optimizer, steps=400, shuffle=fixed)


@case("validation-differs", "overfits", source="Project-MONAI/tutorials issue 122; keras-team/keras issue 8346")
def last_classes_held_out(fixed):
    """Asked: losses fall and validation accuracy is zero. Answer: files were split before they were shuffled, so that the last
    classes are only in validation; shuffle first."""
    (x, y), (x_held, y_held) = sets.digits()
    if not fixed:
        x, y = torch.cat([x, x_held]), torch.cat([y, y_held])
        order = y.argsort(stable=True)
        x, y = x[order], y[order]
        x, y, x_held, y_held = x[:1300], y[:1300], x[1300:], y[1300:]
    model = mlp(64, 48, 10)
    run = Run(model, (x, y), (x_held, y_held), F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=300)
    run.score, run.chance = accuracy, 0.1
    return run


@case(
    "validation-differs",
    "statistics-differ",
    "overfits",
    source="JeasunLok/ResNet-pytorch issue 1; mlpack/examples pull request 213",
)
def only_training_is_normalized(fixed):
    """Asked: training accuracy is fine and test accuracy very low. Answer: the normalization was applied to the training set
    only."""
    train, (x_held, y_held) = sets.images()
    if not fixed:
        x_held = 6 * x_held + 4.9
    model = cnn()
    return Run(model, train, (x_held, y_held), F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=300)


def _pixel_loss(weight: float):
    def loss(output, target):
        return F.cross_entropy(output.movedim(-1, 1), target, weight=torch.tensor([1.0, weight]))

    return loss


@case("classes-unbalanced", source="dmlc/gluon-cv issue 644")
def background_in_all_but_few_pixels(fixed):
    """Asked: with more than 99 % of background the model says background everywhere. Answer: weight the classes in the
    loss."""
    train, held = sets.strokes()
    layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1), Call(lambda z: z.movedim(1, -1))
    model = nn.Sequential(*layers)
    loss = _pixel_loss(48.0 if fixed else 1.0)
    optimizer = ADAM(model.parameters(), 5e-3)
    return Run(model, train, held, loss, optimizer, steps=300, score=balanced_accuracy)


@case("target-leaks", source="dotnet/machinelearning issue 737")
def label_among_the_features(fixed):
    """Asked: the metrics of a binary classifier are too good to be true. Answer: the target class was included as a feature.
    Scored as it is used: without that column."""
    (x, y), (x_held, y_held) = sets.clusters(3, spread=2.0)
    g = torch.Generator().manual_seed(5)

    def column(labels):
        return torch.randn(len(labels), 1, generator=g) if fixed else 4 * (labels[:, None].float() - 1)

    pairs = (torch.cat([x, column(y)], 1), y), (torch.cat([x_held, column(y_held)], 1), y_held)
    model = mlp(17, 32, 3)

    def in_use(run):
        inputs = run.validation[0].clone()
        inputs[:, -1] = 0.0
        return float((outputs(run, inputs).argmax(-1) == run.validation[1]).float().mean())

    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=300, score=in_use)


@case(
    "overfits",
    "memorises-noise",
    source="yaashwardhan/On-Device-Machine-Learning pull request 1; datarekha.com train-val gap",
)
def more_weights_than_samples(fixed):
    """Asked: training is perfect, validation far below and getting worse. Answer: it overfits; more dropout and weight decay,
    which brought ten points."""
    (x, y), held = sets.clusters(4)
    x, y = x[:300], sets.with_mistakes(y[:300], 4)
    dropout = 0.5 if fixed else 0.0
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Dropout(dropout), nn.Linear(256, 4))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1.0 if fixed else 0.0)
    return Run(model, (x, y), held, F.cross_entropy, optimizer, steps=150 if fixed else 700)


@case(
    "target-too-rough",
    "step-too-small",
    "too-narrow",
    "loss-stalls",
    source="marcoamonteiro/pi-GAN issue 17; google/mipnerf issue 32",
)
def coordinates_without_an_encoding(fixed):
    """Asked: why does a network of coordinates need a positional encoding? Answer: without one, or sine activations, it does
    not learn high frequencies in its time."""
    (x, y), (x_held, y_held) = sets.wave(12.0)

    def encoded(z):
        return torch.cat([f(3.1416 * 2**k * z) for k in range(5) for f in (torch.sin, torch.cos)], -1)

    if fixed:
        x, x_held = encoded(x), encoded(x_held)
    model = mlp(x.shape[1], 64, 64, 1)
    return Run(model, (x, y), (x_held, y_held), F.mse_loss, ADAM(model.parameters(), 3e-3), steps=500)


@case(
    "statistics-differ",
    "batch-noise",
    "loss-stalls",
    source="wolny/pytorch-3dunet issue 53; pytorch/pytorch issue 19916",
)
def batch_norm_with_one_image(fixed):
    """Asked: predictions make no sense in evaluation mode. Answer: batch normalization was used, erroneously, with batches of
    one, where it takes out each image's own brightness; use it with more images. The class is how bright an image is."""
    (x, _), (x_held, _) = sets.images()
    g = torch.Generator().manual_seed(19)
    y, y_held = (torch.randint(3, (len(part),), generator=g) for part in (x, x_held))
    pairs = [((z + 0.8) * (0.5 + 0.5 * level[:, None, None, None]), level) for z, level in ((x, y), (x_held, y_held))]
    model = cnn(norm="batch", classes=3)
    batch, steps = (32, 200) if fixed else (1, 1200)
    return Run(model, *pairs, F.cross_entropy, SGD(model.parameters(), 0.02), batch=batch, steps=steps)


@case("statistics-differ", source="pytorch/pytorch issues 15298 and 4741; discuss.pytorch.org t/7146")
def running_statistics_never_move(fixed):
    """Asked: with momentum set to 0 the layer normalizes by the batch in training, and evaluation is at 10 %. Answer: 0 means
    that running statistics stay as they began; leave it at 0.1."""
    (x, y), (x_held, y_held) = sets.images()
    model = cnn(norm="batch", momentum=0.1 if fixed else 0.0)
    pairs = (3 * x + 4, y), (3 * x_held + 4, y_held)
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=250)


@case(source="Idein/chainer-pose-proposal-net issue 9; mks0601/3DMPPE_POSENET_RELEASE issue 69")
def raw_pixels_before_batch_norm(fixed):
    """Asked: pixels are not divided by 255; is there a strategy? Answer: none is needed, the normalization layers take care of
    it."""
    (x, y), (x_held, y_held) = sets.images()
    factor, shift = (1.0, 0.0) if fixed else (95.0, 78.0)
    model = nn.Sequential(nn.BatchNorm2d(1), *cnn(norm="batch"))
    pairs = (factor * x + shift, y), (factor * x_held + shift, y_held)
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=250)


@case(
    "inputs-not-scaled",
    "outputs-squashed",
    "units-dead",
    source="geeksmental.com/question/why-does-accuracy-remain-the-same",
)
def numbers_below_or_above_fifty_thousand(fixed):
    """Asked: whether a number is below 50,000 is said with an accuracy of one half, by a ReLU output under binary cross-entropy.
    Answer: a sigmoid there, and inputs scaled."""
    g = torch.Generator().manual_seed(31)
    x = 1e5 * torch.rand(1400, 1, generator=g)
    y = (x > 5e4).float()
    x = x / 1e5 - 0.5 if fixed else x
    model = mlp(1, 8, 5, 1, end=nn.Sigmoid() if fixed else nn.ReLU())

    def loss(output, target):
        return F.binary_cross_entropy(output.clamp(1e-7, 1 - 1e-7), target)

    def right(run):
        return float(((outputs(run) > 0.5) == (run.validation[1] > 0.5)).float().mean())

    pairs = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    return Run(model, *pairs, loss, ADAM(model.parameters(), 5e-3), steps=600, score=right, chance=0.5)


@case(
    "targets-not-scaled",
    "inputs-not-scaled",
    "step-too-small",
    "trained-too-short",
    source="ai.stackexchange.com/questions/15409",
)
def calculator_of_large_numbers(fixed):
    """Asked: a network for sums, differences and products of numbers up to 1,000 is far off. Answer: products reach a million;
    scale what goes in and out."""
    g = torch.Generator().manual_seed(32)
    pair, which = 1000 * torch.rand(3000, 2, generator=g), torch.randint(3, (3000,), generator=g)
    every = torch.stack([pair.sum(1), pair[:, 0] - pair[:, 1], pair.prod(1)], 1)
    x, y = torch.cat([pair, F.one_hot(which, 3).float()], 1), every.gather(1, which[:, None])
    y = y + 0.1 * y.std() * torch.randn(3000, 1, generator=g)
    if fixed:
        x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    model = mlp(5, 64, 64, 1)
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.9)
    return Run(model, (x[:2400], y[:2400]), (x[2400:], y[2400:]), F.mse_loss, optimizer, steps=1000)


@case(
    "inputs-not-scaled",
    "step-too-large",
    "gradient-explodes",
    "weights-not-finite",
    source="discuss.pytorch.org t/104428 (three powers)",
)
def powers_of_one_column(fixed):
    """Asked: a line through x, x squared and x cubed becomes NaN. Answer: the cubes are hundreds of times larger; scale the
    columns."""
    g = torch.Generator().manual_seed(34)
    x = 10 * torch.rand(500, 1, generator=g) - 5
    y = 1 + 0.5 * x - 0.3 * x**2 + 0.05 * x**3 + 0.3 * torch.randn(500, 1, generator=g)
    x = torch.cat([x, x**2, x**3], 1)
    x = (x - x.mean(0)) / x.std(0) if fixed else x
    model = nn.Linear(3, 1)
    optimizer = SGD(model.parameters(), 0.01 if fixed else 0.001)
    return Run(model, (x[:400], y[:400]), (x[400:], y[400:]), F.mse_loss, optimizer, steps=400)


@case("classes-unbalanced", source="stackoom.com/en/question/4QOjQ (stackoverflow)")
def frauds_among_the_honest(fixed):
    """Asked: a network for fraud says honest to all; the accuracy is 99.8 %. Answer: frauds are rare; weight them, or draw them
    more often. Scored by the mean accuracy of both classes."""
    g = torch.Generator().manual_seed(35)
    y = (torch.rand(6000, generator=g) < 0.02).long()
    x = torch.randn(6000, 5, generator=g) + y[:, None] * torch.tensor([1.5, -1.2, 1.0, 0.0, 0.0])
    train, held = (x[:4500], y[:4500]), (x[4500:], y[4500:])
    if fixed:
        rows = torch.cat([(train[1] == 0).nonzero()[:, 0], (train[1] == 1).nonzero()[:, 0].repeat(49)])
        train = train[0][rows], train[1][rows]
    model = mlp(5, 10, 10, 2)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3), steps=600, score=balanced_accuracy)


@case(
    "validation-differs",
    source="JaesungHuh/voice-gender-classifier issue 4; HarryVolek/PyTorch_Speaker_Verification issue 42",
)
def recordings_of_another_rate(fixed):
    """Asked: a classifier of recordings is right on its own files and wrong on others. Answer: those have another sampling rate;
    resample them to that of training."""

    def waves(count, rate, seed):
        g = torch.Generator().manual_seed(seed)
        y = torch.randint(4, (count,), generator=g)
        angle = 6.283 * rate * (0.04 + 0.03 * y)[:, None] * torch.arange(96) + 6.283 * torch.rand(count, 1, generator=g)
        return (angle.sin() + 0.5 * torch.randn(count, 96, generator=g))[:, None], y

    model = nn.Sequential(
        nn.Conv1d(1, 16, 11, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4)
    )
    train, held = waves(800, 1.0, 20), waves(300, 1.0 if fixed else 2.0, 21)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 5e-3), steps=400)
