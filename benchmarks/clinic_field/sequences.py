"""Questions about sequences: masks, shifts, padding, axes."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import sets
from .case import Run, case, outputs
from .parts import Rnn, Transformer, token_loss

SGD, ADAM = torch.optim.SGD, torch.optim.Adam


def _next_by_prefix(run: Run) -> float:
    """Next-symbol accuracy as it is used: each answer from what came before it alone."""
    x, y = run.validation
    rows = slice(0, 250)
    right = [
        (outputs(run, x[rows, : t + 1])[:, -1].argmax(-1) == y[rows, t]).float().mean() for t in range(3, x.shape[1], 4)
    ]
    return float(torch.stack(right).mean())


@case("target-leaks", source="alex-matton/causal-transformer-decoder issue 1; huggingface/transformers issue 48745")
def no_causal_mask(fixed):
    """Asked: trained without a mask the decoder is terrible in use; does it copy the future? Answer: yes, and a causal mask was
    added."""
    train, held = sets.language()
    model = Transformer(8, 8, layers=1, causal=fixed)
    optimizer = ADAM(model.parameters(), 6e-3)
    return Run(model, train, held, token_loss, optimizer, steps=350, score=_next_by_prefix, chance=0.14)


@case("target-leaks", source="karpathy/minGPT issue 132")
def attention_normalized_over_queries(fixed):
    """Asked: with softmax along -2 losses are incredibly low and samples are poor. Answer: that axis carries information from
    later places; -1 is right."""
    train, held = sets.language()
    model = Transformer(8, 8, width=24, causal=True, axis=-1 if fixed else -2)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    return Run(model, train, held, token_loss, optimizer, steps=350, score=_next_by_prefix, chance=0.14)


@case(
    "target-leaks",
    "labels-misaligned",
    source="KempnerInstitute/KempnerForge issue 154; huggingface/transformers pull request 404",
)
def labels_not_shifted(fixed):
    """Asked: the loss of captioning collapses to 0. Answer: labels are those of the current, visible symbol; shift them by
    one. Scored on the symbol that follows."""
    (x, y), (x_held, y_held) = sets.language()
    model = Transformer(8, 8, layers=1, width=48, causal=True)

    def follows(run):
        return float((outputs(run, x_held)[:, 2:].argmax(-1) == y_held[:, 2:]).float().mean())

    pairs = ((x, y), (x_held, y_held)) if fixed else ((x, x), (x_held, x_held))
    return Run(
        model, *pairs, token_loss, ADAM(model.parameters(), 5e-3), batch=16, steps=400, score=follows, chance=0.14
    )


@case(
    "labels-misaligned",
    "target-leaks",
    source="huggingface/transformers pull request 44642; InternLM/InternLM issue 318",
)
def labels_shifted_twice(fixed):
    """Asked: labels are shifted in the data and again in the loss. Answer: shift once; such a model learns the symbol after the
    next."""
    rows = sets.chain(8, 18)
    shift = 1 if fixed else 2
    x, y = rows[:, :16].contiguous(), rows[:, shift : 16 + shift].contiguous()
    model = Transformer(8, 8, layers=1, width=40, causal=True)

    def follows(run):
        return float((outputs(run)[:, 2:].argmax(-1) == rows[1000:, 3:17]).float().mean())

    pairs = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    return Run(model, *pairs, token_loss, ADAM(model.parameters(), 4e-3), steps=350, score=follows, chance=0.14)


def _padded_language(length: int = 48) -> tuple[Tensor, Tensor]:
    """Rows of the chain of 5 to 10 symbols, then padding (8), and what follows at every place."""
    rows = sets.chain(8, 17)
    size = torch.randint(5, 11, (len(rows),), generator=torch.Generator().manual_seed(13))
    full = torch.full((len(rows), length + 1), 8)
    full[:, :17] = rows
    full = torch.where(torch.arange(length + 1) <= size[:, None], full, torch.full_like(full, 8))
    return full[:, :-1].contiguous(), full[:, 1:].contiguous()


@case(
    "padding-counted", source="lucidrains/DALLE-pytorch issue 57; EleutherAI/aria pull request 40; 01-ai/Yi issue 110"
)
def padding_in_the_loss(fixed):
    """Asked: how is the loss of padding avoided when its labels are not set to the ignored index? Answer: it is not; ignore
    them. Scored where there is text."""
    x, y = _padded_language()
    text = torch.where(x == 8, torch.full_like(y, -100), y)
    text = torch.where(y == 8, torch.full_like(y, -100), text)
    model = Transformer(9, 9, causal=True, length=48, layers=1, width=32)

    def in_text(run):
        said, wanted = outputs(run, x[1000:])[:, 2:], text[1000:, 2:]
        return float((said.argmax(-1) == wanted)[wanted >= 0].float().mean())

    labels = text if fixed else y
    pairs = (x[:1000], labels[:1000]), (x[1000:], labels[1000:])
    optimizer = ADAM(model.parameters(), 6e-3)
    return Run(model, *pairs, token_loss, optimizer, batch=32, steps=260, score=in_text, chance=0.14)


@case("attention-unmasked", source="yg211/bert_nli pull request 3; jingyaogong/minimind-v issue 76")
def padding_attended_to(fixed):
    """Asked: attention masks are 1 everywhere. Answer: set them to 0 at padding, which improves accuracy."""
    g = torch.Generator().manual_seed(14)
    n, length = 1500, 48
    size = torch.randint(3, 7, (n,), generator=g)
    x = torch.randint(1, 9, (n, length), generator=g)
    x = torch.where(torch.arange(length) < size[:, None], x, torch.zeros_like(x))
    y = ((x.float() * (x > 0)).sum(1) / size > 4.5).long()  # whether its symbols are large, however many there are
    model = Transformer(9, 2, layers=1, width=16, length=48, pooled=True, padding=0 if fixed else None)
    pairs = (x[:1000], y[:1000]), (x[1000:], y[1000:])
    return Run(model, *pairs, F.cross_entropy, SGD(model.parameters(), 0.1), steps=250)


class _LastState(nn.Module):
    """A recurrent classifier of symbols that reads its last output, or the last one before padding."""

    def __init__(self, before_padding: bool):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 16), nn.RNN(16, 24, batch_first=True), nn.Linear(24, 4)
        self.before_padding = before_padding

    def forward(self, x: Tensor) -> Tensor:
        states = self.rnn(self.embed(x))[0]
        last = (x > 0).sum(1) - 1 if self.before_padding else torch.full((len(x),), x.shape[1] - 1)
        return self.head(states[torch.arange(len(x)), last])


@case(
    "attention-unmasked",
    "padding-counted",
    "gradient-vanishes",
    source="thtrieu/qclass_dl issue 1; HHTseng/video-classification issue 39",
)
def last_state_after_padding(fixed):
    """Asked: with outputs[-1] the result is terrible; is it the output for the padding? Answer: yes, take the last one before
    it."""
    train, held = sets.padded(length=40)
    model = _LastState(before_padding=fixed)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 3e-3), steps=350)


def _steps_of_one(length: int = 16, samples: int = 1500) -> Tensor:
    """Rows in which each symbol is most often the next of eight, so that a hidden one follows from its neighbors."""
    g = torch.Generator().manual_seed(16)
    moves = (torch.rand(samples, length, generator=g) < 0.9).long()
    moves[:, 0] = torch.randint(8, (samples,), generator=g)
    return moves.cumsum(1) % 8


@case(
    "target-leaks",
    source="huggingface/transformers issue 20797",
    costs_nothing="hidden symbols are learned as well; only the loss looks better than it is",
)
def loss_on_symbols_that_are_visible(fixed):
    """Asked: the loss of a masked language model is 0.1 to 0.2. Answer: labels of symbols that were not masked must be ignored.
    Scored on masked symbols."""
    rows = _steps_of_one()
    g = torch.Generator().manual_seed(15)
    hidden = torch.rand(rows.shape, generator=g) < 0.15
    hidden[:, :3] = False
    x = torch.where(hidden, torch.full_like(rows, 8), rows)
    masked = torch.where(hidden, rows, torch.full_like(rows, -100))
    labels = masked if fixed else rows
    model = Transformer(9, 8, layers=1)

    def at_masks(run):
        return float((outputs(run, x[1000:]).argmax(-1) == rows[1000:])[hidden[1000:]].float().mean())

    pairs = (x[:1000], labels[:1000]), (x[1000:], labels[1000:])
    return Run(model, *pairs, token_loss, ADAM(model.parameters(), 4e-3), steps=300, score=at_masks, chance=0.14)


def _counted(logits: Tensor, target: Tensor) -> Tensor:
    """The sum over places that count, divided by their number or 1."""
    total = F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="sum", ignore_index=-100)
    return total / (target >= 0).sum().clamp_min(1)


@case(
    "labels-ignored",
    "step-without-effect",
    "layer-untrained",
    source="unslothai/unsloth issue 2900; zai-org/ChatGLM-6B issue 686",
)
def every_label_ignored(fixed):
    """Asked: training losses are all 0 and answers empty. Answer: all labels are -100, because the mask of the prompt did not
    match the template; correct it."""
    (x, y), (x_held, y_held) = sets.language()
    prompt = torch.arange(16) < (6 if fixed else 16)
    model = Transformer(8, 8, layers=1, width=32, causal=True, post_norm=True)

    def answers(run):
        return float((outputs(run, x_held)[:, 6:].argmax(-1) == y_held[:, 6:]).float().mean())

    y, held = (
        torch.where(prompt, torch.full_like(y, -100), y),
        torch.where(prompt, torch.full_like(y_held, -100), y_held),
    )
    optimizer = ADAM(model.parameters(), 4e-3)
    return Run(model, (x, y), (x_held, held), _counted, optimizer, steps=350, score=answers, chance=0.14)


class _ViewedLoss:
    """Cross-entropy over (n, classes, places), got by transposing or by merely renaming the axes."""

    def __init__(self, transposed: bool):
        self.transposed = transposed

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        n, t, classes = logits.shape
        return F.cross_entropy(logits.transpose(1, 2) if self.transposed else logits.reshape(n, classes, t), target)


@case(
    "loss-mismatched",
    "labels-misaligned",
    source="pytorch/pytorch issue 27626; tsunrise/everybody-compose pull request 49",
)
def classes_and_places_renamed(fixed):
    """Asked: cross-entropy of (batch, places, classes) gives probabilities that do not sum to one. Answer: classes belong on the
    second axis; move them there, do not reshape."""
    train, held = sets.language()
    model = Transformer(8, 8, causal=True, layers=1, width=32, heads=4)
    return Run(model, train, held, _ViewedLoss(fixed), ADAM(model.parameters(), 8e-3), batch=48, steps=250)


@case(
    "samples-mixed",
    "loss-stalls",
    "labels-unrelated",
    source="yunjey/pytorch-tutorial issue 196; pytorch/pytorch issue 1538",
)
def time_taken_for_the_batch(fixed):
    """Asked: with batch_first=False instead of True the accuracy of digits read row by row is 11 %. Answer: the input is (batch,
    time, features); say so."""
    (x, y), (x_held, y_held) = sets.digits()
    model = Rnn(nn.LSTM, 8, 32, 10, batch_first=fixed)
    pairs = (x.view(-1, 8, 8), y), (x_held.view(-1, 8, 8), y_held)
    return Run(model, *pairs, F.cross_entropy, ADAM(model.parameters(), 5e-3), steps=400)


class _Viewed(nn.Module):
    """A recurrent network that wants (time, batch, features), got by transposing, or by a view that leaves numbers in place."""

    def __init__(self, transposed: bool):
        super().__init__()
        self.rnn, self.head, self.transposed = nn.GRU(4, 20), nn.Linear(20, 3), transposed

    def forward(self, x: Tensor) -> Tensor:
        n, time, features = x.shape
        return self.head(self.rnn(x.transpose(0, 1) if self.transposed else x.reshape(time, n, features))[0][-1])


@case(
    "samples-mixed",
    "loss-stalls",
    "labels-unrelated",
    source="Jingkang50/OpenPSG issue 56; vitrioil/Speech-Separation issue 4",
)
def view_in_place_of_permute(fixed):
    """Asked: view is used to exchange two axes, one of them the batch. Answer: that mixes the data; it is harmless with one
    sample a batch and needs a permutation otherwise."""
    train, held = sets.tones()
    model = _Viewed(transposed=fixed)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-2), batch=24, steps=200)


def _shifts_inside(logits: Tensor, target: Tensor) -> Tensor:
    return token_loss(logits[:, :-1], target[:, 1:])


@case(source="tatsu-lab/stanford_alpaca issue 45; OpenRLHF/OpenRLHF issue 362")
def labels_shifted_inside_the_loss(fixed):
    """Asked: labels equal inputs; where are they shifted? Answer: inside the loss; nothing is wrong."""
    (x, y), (x_held, y_held) = sets.language()
    model = Transformer(8, 8, layers=1, width=40, causal=True)

    def follows(run):
        return float((outputs(run, x_held)[:, 2:].argmax(-1) == y_held[:, 2:]).float().mean())

    pairs, loss = (((x, y), (x_held, y_held)), token_loss) if fixed else (((x, x), (x_held, x_held)), _shifts_inside)
    return Run(model, *pairs, loss, ADAM(model.parameters(), 6e-3), steps=450, score=follows, chance=0.14)


@case(source="ChiWeiHsiao/DeepVO-pytorch issue 31; HHTseng/video-classification issue 3")
def batch_first_as_it_should_be(fixed):
    """Asked: the LSTM gets (batch, time, features) although the manual says otherwise. Answer: batch_first is set; nothing is
    wrong."""
    train, held = sets.tones()
    model = Rnn(nn.LSTM, 4, 24 if fixed else 16, 3, batch_first=True)
    return Run(model, train, held, F.cross_entropy, ADAM(model.parameters(), 1e-2), steps=250)


def _series(like: int = 24) -> tuple[Tensor, Tensor]:
    """Pieces of two waves with some noise, of unit size, and the number that follows each."""
    g = torch.Generator().manual_seed(37)
    t = torch.arange(900.0)
    whole = torch.sin(t / 4) + 0.5 * torch.sin(t / 9 + 1) + 0.15 * torch.randn(900, generator=g)
    rows = whole.unfold(0, like + 1, 1)
    rows = rows[torch.randperm(len(rows), generator=g)]
    return rows[:, :like, None], rows[:, like:]


@case(
    "targets-not-scaled",
    "trained-too-short",
    "step-too-small",
    "inputs-not-scaled",
    source="techfeed.net/pt/470072 (stackoverflow)",
)
def relative_changes_of_a_thousandth(fixed):
    """Asked: predicted changes of a price, a few thousandths, are squashed toward nothing. Answer: scale them, and train on."""
    x, y = _series()
    size = 1.0 if fixed else 2e-3
    model = Rnn(nn.LSTM, 1, 24, 1, batch_first=True)
    optimizer = ADAM(model.parameters(), 3e-3)
    return Run(
        model, (x[:600] * size, y[:600] * size), (x[600:] * size, y[600:] * size), F.mse_loss, optimizer, steps=250
    )


@case(
    "targets-not-scaled",
    "inputs-not-scaled",
    "units-saturated",
    "step-too-small",
    source="hunkim/DeepLearningZeroToAll pull request 137",
)
def prices_as_they_are(fixed):
    """Asked: a recurrent network on closing prices of some hundreds draws a flat line. Answer: scale them to around one."""
    x, y = _series(20)
    shift, size = (0.0, 1.0) if fixed else (400.0, 50.0)
    model = Rnn(nn.LSTM, 1, 24, 1, batch_first=True)
    pairs = (shift + size * x[:600], shift + size * y[:600]), (shift + size * x[600:], shift + size * y[600:])
    return Run(model, *pairs, F.mse_loss, ADAM(model.parameters(), 5e-3), steps=300)


@case("outputs-squashed", "layer-cut-off", "gradient-vanishes", source="keras-team/keras issue 500")
def softmax_of_one_number(fixed):
    """Asked: a recurrent network answers 1 whatever it is given. Answer: its output is a softmax of one number, which is 1."""
    x, y = _series()
    model = Rnn(nn.GRU, 1, 24, 1, batch_first=True)
    model = model if fixed else nn.Sequential(model, nn.Softmax(-1))
    return Run(model, (x[:600], y[:600]), (x[600:], y[600:]), F.mse_loss, ADAM(model.parameters(), 5e-3), steps=250)
