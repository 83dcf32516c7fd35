"""Questions about networks that were trained before: what is loaded, frozen, adapted, and with which step."""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import sets
from .case import Pair, Run, case, train
from .parts import LoraLinear, Rnn, mlp

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


def _first_task() -> Pair:
    """Digits below five, upright and turned by quarters, as twenty classes."""
    (x, y), _ = sets.images()
    x, y = x[y < 5], y[y < 5]
    turned = [x.rot90(k, (2, 3)) for k in range(4)]
    return torch.cat(turned).flatten(1), torch.cat([y + 5 * k for k in range(4)])


def _second_task(samples: int = 120):
    """Few digits from five on, classes 0 to 4."""
    (x, y), (x_held, y_held) = sets.digits()
    kept, kept_held = y >= 5, y_held >= 5
    return (x[kept][:samples], y[kept][:samples] - 5), (x_held[kept_held], y_held[kept_held] - 5)


def _net() -> nn.Sequential:
    return mlp(64, 64, 64, 64, 5)


@cache
def _pretrained() -> dict[str, Tensor]:
    """Weights after the first task, without the head."""
    state = torch.get_rng_state()
    torch.manual_seed(77)
    model, pair = mlp(64, 64, 64, 64, 20), _first_task()
    train(Run(model, pair, pair, F.cross_entropy, ADAM(model.parameters(), 1e-3), batch=64, steps=500))
    torch.set_rng_state(state)
    return {name: value.detach().clone() for name, value in model.state_dict().items() if not name.startswith("6.")}


def _with_weights(prefix: str = "") -> nn.Sequential:
    """The network with those weights and a new head; nothing is loaded where names carry a prefix."""
    model = _net()
    model.load_state_dict({prefix + name: value.clone() for name, value in _pretrained().items()}, strict=False)
    return model


def _freeze(model: nn.Sequential, *parts: int) -> None:
    for i in parts:
        model[i].requires_grad_(False)


def _free(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


@case("step-too-large", source="facebookarchive/fb.resnet.torch issue 150; microsoft/Swin-Transformer issue 126")
def step_of_the_first_training(fixed):
    """Asked: after loading a trained model its loss is like that from scratch. Answer: the default step is too high for
    fine-tuning; a tenth or a hundredth."""
    data = _second_task(60)
    model = _with_weights()
    optimizer = SGD(model.parameters(), 0.01 if fixed else 1.0, momentum=0.9)
    return Run(model, *data, F.cross_entropy, optimizer, batch=16, steps=200)


@case("frozen-by-mistake", "layer-untrained", "labels-unrelated", source="huggingface/peft issues 876 and 577")
def head_frozen_with_the_rest(fixed):
    """Asked: a tuned classifier does far worse than it should. Answer: its new head is drawn at random and must be among the
    modules that are trained. Here a loop leaves nothing free but biases."""
    data = _second_task()
    model = _with_weights()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(("4.", "6.")) if fixed else name in ("0.bias", "6.bias"))
    return Run(model, *data, F.cross_entropy, ADAM(_free(model), 5e-3), batch=16, steps=250)


@case(
    "checkpoint-not-loaded",
    "frozen-by-mistake",
    "layer-untrained",
    source="BestJuly/IIC issue 11; pytorch/pytorch issue 141256",
)
def nothing_was_loaded(fixed):
    """Asked: with and without pre-training the accuracy is the same. Answer: all keys carry a prefix, and strict=False loads
    none without a word; strip it."""
    data = _second_task(60)
    model = _with_weights("" if fixed else "module.")
    if not fixed:
        for i in (0, 2):
            nn.init.normal_(model[i].weight, std=0.02)
    _freeze(model, 0, 2)
    return Run(model, *data, F.cross_entropy, ADAM(_free(model), 5e-3), batch=16, steps=250)


@case(
    "inputs-not-scaled",
    "validation-differs",
    "signal-explodes",
    source="zhongyy/Face-Transformer issue 28; PAIR-code/saliency issue 66",
)
def other_scale_than_in_the_first_training(fixed):
    """Asked: why is the image divided by 255? Answer: because the network was trained so; inputs of another scale are another
    kind of input to it."""
    (x, y), (x_held, y_held) = _second_task()
    if not fixed:
        x, x_held = 96 * x + 78, 96 * x_held + 78
    model = _with_weights()
    return Run(model, (x, y), (x_held, y_held), F.cross_entropy, SGD(model.parameters(), 0.05), batch=16, steps=200)


def _adapted(rank: int, *, cut: bool = False) -> nn.Sequential:
    model = _with_weights()
    for i in (0, 2, 4):
        model[i] = LoraLinear(model[i], rank)
    nn.init.normal_(model[6].weight, std=0.1)
    model[6].requires_grad_(False)
    return nn.Sequential(*model, _Cut()) if cut else model


class _Cut(nn.Module):
    """A bias of its own after everything before is cut off, as a checkpointed block without input gradients is."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return x.detach() + self.bias


@case(
    "adapter-idle",
    "layer-cut-off",
    "layer-untrained",
    source="cloneofsimo/lora issue 26; locuslab/open-unlearning issue 178",
)
def adapters_without_a_gradient(fixed):
    """Asked: with gradient checkpointing the upper factors of the adapters stay zero. Answer: inputs of the frozen model do not
    require a gradient, so the checkpoints give none; enable it."""
    data = _second_task(200)
    model = _adapted(4, cut=not fixed)
    return Run(model, *data, F.cross_entropy, ADAM(_free(model), 3e-3), batch=32, steps=200)


@case("adapter-idle", "frozen-by-mistake", "layer-untrained", source="tloen/alpaca-lora issue 352")
def adapters_loaded_for_inference(fixed):
    """Asked: trainable parameters: 0. Answer: the adapter was loaded for inference; pass is_trainable=True. Here the biases of
    the norm-free head alone still learn."""
    data = _second_task(400)
    model = _adapted(8)
    if not fixed:
        for i in (0, 2, 4):
            model[i].requires_grad_(False)
        model[6].bias.requires_grad_(True)
    return Run(model, *data, F.cross_entropy, ADAM(_free(model), 2e-3), batch=64, steps=250)


@case("adapter-idle", "layer-untrained", "gradient-vanishes", "units-alike", source="huggingface/peft issue 793")
def adapters_zero_in_both_factors(fixed):
    """Asked: a tuned model answers exactly like its base; B was zero after training. Answer: with both factors at zero neither
    gets a gradient; only one of them may start there."""
    data = _second_task(300)
    model = _adapted(6)
    if not fixed:
        for i in (0, 2, 4):
            nn.init.zeros_(model[i].down)
    return Run(model, *data, F.cross_entropy, torch.optim.AdamW(_free(model), 4e-3), batch=32, steps=200)


@case(source="huggingface/transformers issue 228; airsplay/lxmert issue 78")
def backbone_frozen_on_purpose(fixed):
    """Asked: may one freeze what was trained before and train the top only? Answer: yes, with few samples it is a fair choice;
    nothing is wrong."""
    data = _second_task(400)
    model = _with_weights()
    if not fixed:
        _freeze(model, 0)
    return Run(model, *data, F.cross_entropy, ADAM(_free(model), 1e-3), batch=16, steps=250)


class _Words(nn.Module):
    """Frozen word vectors and a recurrent network over them."""

    def __init__(self, vectors: Tensor):
        super().__init__()
        self.vectors = nn.Embedding.from_pretrained(vectors, freeze=True)
        self.rnn = Rnn(nn.GRU, vectors.shape[1], 16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(self.vectors(x))


@case(
    "frozen-by-mistake",
    "inputs-merge",
    "signal-vanishes",
    "layer-cut-off",
    source="JudyYe/zero-shot-gcn issue 2; keras-team/keras issue 5185",
)
def word_vectors_not_found(fixed):
    """Asked: with pretrained word vectors the accuracy does not move from one half. Answer: no word was found in their file, so
    that all vectors are zero, and they are frozen."""
    g = torch.Generator().manual_seed(38)
    y = torch.randint(2, (1200,), generator=g)
    told = torch.rand(1200, 12, generator=g) < 0.5
    x = torch.where(
        told,
        torch.randint(30, (1200, 12), generator=g) + 30 * y[:, None],
        torch.randint(60, 100, (1200, 12), generator=g),
    )
    vectors = torch.randn(100, 16, generator=g)
    vectors[:30, 0] += 1.5
    vectors[30:60, 0] -= 1.5
    model = _Words(vectors if fixed else torch.zeros_like(vectors))
    optimizer = ADAM(_free(model), 5e-3)
    return Run(model, (x[:900], y[:900]), (x[900:], y[900:]), F.cross_entropy, optimizer, steps=200)
