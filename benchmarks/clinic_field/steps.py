"""Questions whose answer was the size of the step: too large, too small, clipped, decayed or held down."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from . import sets
from .case import Run, case, outputs
from .parts import Transformer, cnn, he_, mlp, token_loss

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


@case("step-too-large", "units-dead", source="datascience.stackexchange.com/questions/28481")
def one_class_after_a_good_start(fixed):
    """Asked: a convolutional network for two classes reaches 99 % and then says one half for everything. Answer: the step is
    too large; a tenth of it, or Adam."""
    (x, y), (x_held, y_held) = sets.images()
    pairs = (x, y % 2), (x_held, y_held % 2)
    model = cnn(classes=2)
    optimizer = SGD(model.parameters(), 0.005 if fixed else 1.0, momentum=0.9)
    return Run(model, *pairs, F.cross_entropy, optimizer, steps=400)


@case("step-too-large", "weights-not-finite", "warm-up-missing", source="karpathy/nanoGPT issue 136")
def language_model_at_ten_times_the_step(fixed):
    """Asked: the loss of a small GPT becomes NaN after some iterations. Answer: reduce the learning rate; confirmed."""
    train, held = sets.language()
    model = Transformer(8, 8, causal=True)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3 if fixed else 0.3, weight_decay=0.1)
    return Run(model, train, held, token_loss, optimizer, steps=400)


@case("step-too-large", "units-dead", source="xcmyz/FastSpeech issue 37; ssnl/dataset-distillation issue 11")
def adam_at_a_large_default(fixed):
    """Asked: the default learning rate is too big and the loss cannot converge. Answer: the default was lowered."""
    train, held = sets.clusters(6, samples=1500)
    model = mlp(16, 64, 64, 64, 6)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3 if fixed else 0.3), steps=200)


@case("step-too-small", "trained-too-short", source="isp1tze/MAProj issue 3; littlepai/Unofficial-Zhihu-API issue 5")
def step_of_a_hundred_thousandth(fixed):
    """Asked: accuracy is still 0 after twenty rounds at a rate near 1e-5. Answer: that is too small; raise it."""
    train, held = sets.digits()
    model = mlp(64, 64, 10)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3 if fixed else 1e-5), steps=300)


@case("step-too-small", "trained-too-short", source="stats.stackexchange.com/questions/320289")
def wave_at_a_tiny_step(fixed):
    """Asked: a shallow tanh network with plain gradient descent does not follow a wave in 3,000 iterations. Answer: a far
    larger step, or an adaptive one."""
    train, held = sets.wave(1.5)
    model = mlp(1, 64, 64, 1, act=nn.Tanh)
    optimizer = ADAM(model.parameters(), 5e-3) if fixed else SGD(model.parameters(), 1e-3)
    return Run(model, train, held, F.mse_loss, optimizer, batch=64, steps=700)


@case("step-too-small", "trained-too-short", "too-narrow", "gradient-vanishes", source="discuss.pytorch.org t/98714")
def gate_of_two_bits(fixed):
    """Asked: four rows of XNOR, two layers of sigmoids, squares, gradient descent at 0.01: it answers one half for everything.
    Answer: drop the last sigmoid for a loss of logits, widen it, larger steps."""
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = torch.tensor([[1.0], [0.0], [0.0], [1.0]])

    def right(run):
        edge = 0.0 if fixed else 0.5
        return float(((outputs(run) > edge) == (run.validation[1] > 0.5)).float().mean())

    if fixed:
        model = mlp(2, 16, 1, act=nn.Tanh)
        loss, optimizer = F.binary_cross_entropy_with_logits, ADAM(model.parameters(), 0.02)
    else:
        model = mlp(2, 4, 1, act=nn.Sigmoid, end=nn.Sigmoid())
        loss, optimizer = F.mse_loss, SGD(model.parameters(), 0.01)
    return Run(model, (x, y), (x, y), loss, optimizer, batch=4, steps=800, score=right, chance=0.5)


@case("trained-too-short", "step-too-small", source="tensorflow/benchmarks issue 209")
def a_fifth_of_an_epoch(fixed):
    """Asked: accuracy does not increase. Answer: it ran for 0.19 epochs, and ninety are needed; train longer."""
    train, held = sets.images()
    model = cnn()
    return Run(
        model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-3), batch=16, steps=500 if fixed else 16
    )


@case("schedule-ended", "step-too-small", "loss-stalls", "trained-too-short", source="Lornatang/SRGAN-PyTorch issue 1")
def schedule_counted_in_batches(fixed):
    """Asked: a tenth after half of the epochs, but the scheduler is called after every batch, and nothing trains. Answer: call
    it after each epoch."""
    train, held = sets.digits()
    model = mlp(64, 48, 10)
    passes, a_pass = 12, 1300 // 32

    def factor(step):
        return 0.1 ** (((step // a_pass) if fixed else step) // (passes // 2))

    return Run(
        model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=passes * a_pass, schedule=factor
    )


@case(
    "schedule-ended", "step-too-small", "loss-stalls", "trained-too-short", source="matteo-dunnhofer/imagenet issue 10"
)
def divided_at_every_step(fixed):
    """Asked: the loss stays at 8.1 for three epochs. Answer: the rate was divided at every step and is nearly 0; divide it
    after ten epochs."""
    train, held = sets.images()
    model = cnn()

    def factor(step):
        return 0.1 ** (step // 250) if fixed else 0.7**step

    return Run(
        model, train, held, F.cross_entropy, SGD(model.parameters(), 0.05, momentum=0.9), steps=400, schedule=factor
    )


@case("schedule-ended", "step-too-small", "trained-too-short", "warm-up-missing", source="coqui-ai/TTS issue 1611")
def warm_up_longer_than_training(fixed):
    """Asked: 4,000 warm-up steps, but the scheduler moves once an epoch, so that the rate never gets up. Answer: move it every
    step."""
    train, held = sets.language()
    model = Transformer(8, 8, causal=True, layers=1, width=48)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3)
    warm = 40 if fixed else 40 * 31
    return Run(
        model, train, held, token_loss, optimizer, steps=350, schedule=lambda step: min(1.0, (step + 1) / warm) ** 1.5
    )


@case("regularized-too-hard", source="BVLC/caffe issue 1396")
def decay_of_a_half(fixed):
    """Asked: any input gives the same output. Answer: weight decay of 0.5 takes all weights to zero; 0.0005 is normal."""
    train, held = sets.digits()
    model = mlp(64, 64, 32, 10)
    optimizer = SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=5e-4 if fixed else 0.5)
    return Run(model, train, held, F.cross_entropy, optimizer, steps=300)


@case(
    "regularized-too-hard", source="hunkim/DeepLearningZeroToAll issue 122; pudae/tensorflow-densenet pull request 22"
)
def share_kept_taken_for_share_dropped(fixed):
    """Asked: 0.9 was meant as what is kept, and the layer drops 0.9. Answer: the rate is one minus it."""
    train, held = sets.digits()
    p = 0.1 if fixed else 0.9
    hidden = [nn.Linear(64, 48), nn.ReLU(), nn.Dropout(p), nn.Linear(48, 48), nn.ReLU(), nn.Dropout(p)]
    model = nn.Sequential(*hidden, nn.Linear(48, 10))
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=350)


def _summed(output, target):
    return F.mse_loss(output, target, reduction="sum")


@case(
    "step-too-large",
    "gradient-explodes",
    "weights-not-finite",
    source="ai-safety-foundation/sparse_autoencoder issue 63",
)
def loss_summed_over_the_batch(fixed):
    """Asked: should the loss be a sum or a mean over the batch? Answer: a mean; the sum makes the step grow with the batch."""
    (x, _), (x_held, _) = sets.digits()
    model = mlp(64, 32, 64)
    loss = F.mse_loss if fixed else _summed
    return Run(model, (x, x), (x_held, x_held), loss, SGD(model.parameters(), 0.5, momentum=0.9), batch=64, steps=400)


def _accumulating(parts: int, *, divided: bool):
    """A step over several small batches, drawn from the one that is given."""

    def step(run, x, y):
        run.model.train()
        run.optimizer.zero_grad()
        for part_x, part_y in zip(x.chunk(parts), y.chunk(parts), strict=True):
            value = run.loss(run.model(part_x), part_y)
            (value / parts if divided else value).backward()
        run.optimizer.step()

    return step


@case("step-too-large", "units-dead", source="fastai/fastai issue 3023; paiml/aprender pull request 2123")
def accumulated_without_dividing(fixed):
    """Asked: with gradient accumulation the loss explodes after a while. Answer: losses are added and not averaged, so the step
    is as many times larger; divide by their number."""
    train, held = sets.digits()
    model = mlp(64, 48, 48, 10)
    optimizer = SGD(model.parameters(), 0.08, momentum=0.9)
    return Run(
        model, train, held, F.cross_entropy, optimizer, batch=64, steps=300, step=_accumulating(16, divided=fixed)
    )


def _scaled_step(*, unscale_first: bool, scale: float = 2.0**14):
    """What a gradient scaler does, and where the clipping comes."""

    def step(run, x, y):
        run.model.train()
        run.optimizer.zero_grad()
        (scale * run.loss(run.model(x), y)).backward()
        weights = [p for p in run.model.parameters() if p.grad is not None]
        for stage in ("unscale", "clip") if unscale_first else ("clip", "unscale"):
            if stage == "clip":
                nn.utils.clip_grad_norm_(weights, 1.0)
            else:
                for p in weights:
                    p.grad /= scale
        run.optimizer.step()

    return step


@case(
    "clipped-scaled",
    "step-too-small",
    "trained-too-short",
    "step-without-effect",
    source="victorchall/EveryDream2trainer pull request 175; milesial/Pytorch-UNet pull request 470",
)
def clipped_before_unscaled(fixed):
    """Asked: with mixed precision a clip of 1.0 all but halts training. Answer: gradients are clipped while they still carry
    the loss scale; unscale them first."""
    train, held = sets.digits()
    model = mlp(64, 48, 10)
    optimizer = SGD(model.parameters(), 0.05, momentum=0.9)
    return Run(model, train, held, F.cross_entropy, optimizer, steps=300, step=_scaled_step(unscale_first=fixed))


@case("precision-too-low", source="workofart/ml-by-hand pull request 85; hp-l33/AiM issue 10")
def updates_lost_in_half_precision(fixed):
    """Asked: with all weights in bfloat16 the loss comes down far slower. Answer: updates are rounded away; keep a copy of the
    weights in single precision."""
    (x, y), (x_held, y_held) = sets.digits()
    dtype = torch.float32 if fixed else torch.bfloat16
    model = he_(mlp(64, 64, 10)).to(dtype)
    optimizer = ADAM(model.parameters(), 1e-4)
    return Run(model, (x.to(dtype), y), (x_held.to(dtype), y_held), F.cross_entropy, optimizer, steps=1000)


@case(
    "batch-noise",
    "step-too-large",
    source="erdongsanshi/Fuss-Free-structure issue 4; akolishchak/doom-net-pytorch issue 7",
)
def two_samples_a_step(fixed):
    """Asked: with two samples a batch the error stays high. Answer: the gradient of two samples is too unstable; more samples,
    or a smaller step."""
    train, held = sets.friedman()
    model = mlp(10, 48, 48, 1)
    return Run(model, train, held, F.mse_loss, SGD(model.parameters(), 0.09), batch=64 if fixed else 1, steps=700)


@case(
    "warm-up-missing",
    "step-too-large",
    "gradient-vanishes",
    "inputs-merge",
    source="pytorch/pytorch issue 55270; lucidrains/vit-pytorch issue 56",
)
def deep_post_norm_without_warm_up(fixed):
    """Asked: the library's transformer is unstable from twelve layers on. Answer: with the norm after the sum it needs warm-up;
    with the norm before the branch it does not."""
    train, held = sets.language()
    model = Transformer(8, 8, causal=True, layers=6, width=24, post_norm=not fixed)
    return Run(model, train, held, token_loss, ADAM(model.parameters(), 2e-2), steps=220)


@case(source="PetarV-/GAT issue 7")
def training_below_validation_by_dropout(fixed):
    """Asked: training accuracy is far below validation accuracy. Answer: that is dropout, which is off in validation; nothing is
    wrong."""
    train, held = sets.digits()
    p = 0.1 if fixed else 0.5
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(p), nn.Linear(128, 10))
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 2e-3), steps=350)


@case(source="crowsonkb/k-diffusion issue 50; deepset-ai/FARM issue 46")
def schedule_by_step_as_it_should_be(fixed):
    """Asked: the scheduler is called after every step; is it broken? Answer: no, warm-up and decay are meant in steps."""
    train, held = sets.language()
    model = Transformer(8, 8, causal=True, layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3)
    steps, warm = 300, 10 if fixed else 60

    def factor(step):
        return min(1.0, (step + 1) / warm) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps)))

    return Run(model, train, held, token_loss, optimizer, steps=steps, schedule=factor)


@case(
    "schedule-ended",
    "step-too-small",
    "loss-stalls",
    "trained-too-short",
    source="stats.stackexchange.com/questions/211334",
)
def decay_counted_in_batches(fixed):
    """Asked: what does decay do to the rate? Answer: it divides it by 1 + decay * iterations, and those are batches: 0.5 leaves
    next to nothing after some."""
    train, held = sets.digits()
    model = mlp(64, 32, 10)
    decay = 1e-4 if fixed else 0.5
    optimizer = SGD(model.parameters(), 0.1)
    return Run(model, train, held, F.cross_entropy, optimizer, steps=500, schedule=lambda step: 1 / (1 + decay * step))


@case("step-too-small", "trained-too-short", source="apache/mxnet issue 1546")
def step_of_two_millionths(fixed):
    """Asked: zeros and ones to a number, and the answer is the same for all. Answer: scale, and other rates than 2e-6."""
    g = torch.Generator().manual_seed(36)
    x = (torch.rand(1500, 16, generator=g) > 0.5).float()
    y = x @ torch.randn(16, 1, generator=g)
    y = (y - y.mean()) / y.std()
    model = mlp(16, 32, 10, 5, 1)
    optimizer = SGD(model.parameters(), 0.02 if fixed else 2e-6, momentum=0.9)
    return Run(model, (x[:1200], y[:1200]), (x[1200:], y[1200:]), F.mse_loss, optimizer, steps=500)


@case("trained-too-short", "step-too-small", "batch-noise", source="explosion/spaCy issue 2605")
def all_rows_in_one_batch(fixed):
    """Asked: twenty epochs and hardly better than guessing. Answer: with all rows in a batch that is twenty steps; smaller
    batches."""
    train, held = sets.wine()
    model = mlp(13, 16, 3, act=nn.Tanh)
    size, steps = (8, 450) if fixed else (120, 20)
    return Run(model, train, held, F.cross_entropy, SGD(model.parameters(), 0.01), batch=size, steps=steps)


@case("step-too-large", "gradient-explodes", source="distillpub/post--momentum issue 90")
def momentum_of_almost_one(fixed):
    """Asked: the loss goes up and down without end. Answer: momentum of 0.99 makes a step a hundred times as long; take less."""
    train, held = sets.friedman()
    model = mlp(10, 24, 1)
    optimizer = SGD(model.parameters(), 0.01 if fixed else 0.1, momentum=0.9 if fixed else 0.99)
    return Run(model, train, held, F.mse_loss, optimizer, steps=500)
