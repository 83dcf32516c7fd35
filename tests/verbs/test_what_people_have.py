"""Surveys, diagnoses and watches of what people have: wrapped models, batches of every form, models of several answers."""

import copy

import datasets
import numpy as np
import pandas
import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence

import theodolite as th

READ = ("signal", "feature-spectrum", "gradient-noise", "sharpness", "weight-spectrum", "collapse")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(count=48, width=6):
    x = torch.randn(count, width, generator=seeded())
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()


def perceptron(width=6):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, 3))


class OfImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = perceptron()

    def forward(self, image):
        return self.inner(image)


class TwoAnswers(nn.Module):
    """Logits, and a guess at the inputs whose error is added to the loss."""

    def __init__(self):
        super().__init__()
        self.inner, self.head, self.guess = nn.Linear(6, 12), nn.Linear(12, 3), nn.Linear(12, 1)

    def forward(self, x):
        hidden = self.inner(x).relu()
        return self.head(hidden), self.guess(hidden)


def with_auxiliary(answer, target):
    return F.cross_entropy(answer[0], target) + 0.1 * answer[1].square().mean()


class Padded(nn.Module):
    """Words through an encoder that is told which of them are padding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)  # with nested tensors, as by default
        self.head = nn.Linear(8, 3)

    def forward(self, words):
        return self.head(self.encoder(self.embed(words), src_key_padding_mask=words == 0)[:, 0])


def sentences(count=48):
    words = torch.randint(1, 20, (count, 7), generator=seeded())
    words[::2, 5:] = 0
    return words, words[:, 0] % 3


class OfSequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, packed):
        return self.head(self.gru(packed)[1][-1])


def packed_batches():
    generator, batches = seeded(), []
    for _ in range(3):
        lengths = torch.randint(2, 6, (16,), generator=generator).tolist()
        packed = pack_sequence([torch.randn(n, 4, generator=generator) for n in lengths], enforce_sorted=False)
        batches.append((packed, torch.tensor(lengths) % 3))
    return batches


class RandomInEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = perceptron()

    def forward(self, x):
        return self.inner(F.dropout(x, 0.1, training=True))


def bert():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=3,
        max_position_embeddings=16,
    )
    return transformers.BertForSequenceClassification(config)


def encoded():
    words, labels = sentences()
    return [
        {"input_ids": words[i : i + 16], "attention_mask": (words[i : i + 16] > 0).long(), "labels": labels[i : i + 16]}
        for i in (0, 16, 32)
    ]


def a_frame():
    x, y = rows()
    return pandas.DataFrame(x.numpy(), columns=list("abcdef")).assign(label=y.numpy())


def a_dataset():
    x, y = rows()
    notes = [f"row {i}" for i in range(len(x))]
    return datasets.Dataset.from_dict({"image": x.tolist(), "label": y.tolist(), "note": notes})


CASES = {
    "data parallel": lambda: (nn.DataParallel(perceptron()), rows(), F.cross_entropy),
    "compiled": lambda: (torch.compile(perceptron(), backend="eager"), rows(), F.cross_entropy),
    "compiled in parallel": lambda: (
        nn.DataParallel(torch.compile(perceptron(), backend="eager")),
        rows(),
        F.cross_entropy,
    ),
    "lazy": lambda: (nn.Sequential(nn.LazyLinear(12), nn.ReLU(), nn.LazyLinear(3)), rows(), F.cross_entropy),
    "padding mask": lambda: (Padded(), sentences(), F.cross_entropy),
    "images by name": lambda: (OfImages(), [({"image": rows()[0]}, rows()[1])], F.cross_entropy),
    "one name for another": lambda: (perceptron(), [({"picture": rows()[0]}, rows()[1])], F.cross_entropy),
    "mapping": lambda: (perceptron(), {"x": rows()[0], "y": rows()[1]}, F.cross_entropy),
    "frame": lambda: (perceptron(), a_frame(), F.cross_entropy),
    "frame and column": lambda: (perceptron(), (a_frame()[list("abcdef")], a_frame()["label"]), F.cross_entropy),
    "Hugging Face data set": lambda: (OfImages(), a_dataset(), F.cross_entropy),
    "auxiliary loss": lambda: (TwoAnswers(), rows(), with_auxiliary),
    "packed sequences": lambda: (OfSequences(), packed_batches(), F.cross_entropy),
    "random in eval mode": lambda: (RandomInEval(), rows(), F.cross_entropy),
    "transformers": lambda: (bert(), encoded(), F.cross_entropy),
}


def made(name):
    torch.manual_seed(0)
    return CASES[name]()


@pytest.mark.parametrize("name", CASES)
def test_a_survey_answers_and_says_no_word_of_torch_s(name):
    model, data, loss = made(name)
    before = copy.deepcopy(model.state_dict()) if name != "lazy" else {}
    found = th.survey(model, data=data, loss=loss, lr=0.1, instruments=READ, budget="20s")
    told = {answer.question.name for answer in found.answers}
    assert {"signal", "weight-spectrum"} <= told
    if name != "random in eval mode":  # products with a Hessian that is another each time are refused, in words
        assert {"gradient-noise", "sharpness"} <= told, found.skipped
    said = f"{found.rows()} {found.skipped} {found.facts}"
    assert "RuntimeError" not in said and "module." not in said and "_orig_mod" not in said
    assert all(torch.equal(value, before[key]) for key, value in (model.state_dict().items() if before else ()))
    assert ("random in eval mode" in said) == (name == "random in eval mode")


@pytest.mark.parametrize("name", CASES)
def test_a_diagnosis_is_made(name):
    model, data, loss = made(name)
    found = th.diagnose(model, data=data, loss=loss, budget=5.0)
    assert len(found.checked) > 5
    assert "RuntimeError" not in found.text()


@pytest.mark.parametrize("name", [name for name in CASES if name != "lazy"])
def test_a_watch_looks_at_it(name):
    model, data, loss = made(name)
    watch = th.Watch(model, probe=data, loss=loss)
    record = watch.look(0, lr=0.1)
    assert {reading.quantity for _, reading in record.readings}
    assert ("random in eval mode" in watch.text(width=400)) == (name == "random in eval mode")


def test_a_watch_asks_for_the_first_batch_of_a_lazy_model():
    model, data, loss = made("lazy")
    with pytest.raises(ValueError, match="lazy module"):
        th.Watch(model, probe=data, loss=loss)


def test_a_lazy_model_stays_as_it_was():
    model, data, loss = made("lazy")
    state = torch.get_rng_state()
    found = th.survey(model, data=data, loss=loss, instruments=("weight-spectrum",))
    assert {reading.where for reading in found.readings} == {"0.weight", "2.weight"}
    assert isinstance(model[0].weight, nn.parameter.UninitializedParameter)
    assert torch.equal(state, torch.get_rng_state())


@pytest.fixture
def one_process(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_distributed_model_is_read_as_what_is_inside(one_process):
    x, y = rows()
    wrapped = nn.parallel.DistributedDataParallel(perceptron())
    facts = {"data": (x, y), "loss": F.cross_entropy}
    inside = th.survey(wrapped.module, instruments=READ, lr=0.1, budget=None, **facts)
    assert th.survey(wrapped, instruments=READ, lr=0.1, budget=None, **facts).rows() == inside.rows()
    assert th.diagnose(wrapped, budget=5.0, **facts).checked == th.diagnose(perceptron(), budget=5.0, **facts).checked
    assert th.Watch(wrapped, probe=(x, y)).look(0).readings


def test_data_are_a_path_too(tmp_path):
    x, y = rows()
    np.savez(tmp_path / "digits.npz", x=x.numpy(), y=y.numpy())
    path = str(tmp_path / "digits.npz")
    found = th.survey(perceptron(), data=path, lr=0.1, instruments=READ, budget=None)
    assert (
        found.rows()
        == th.survey(perceptron(), data=(x, y), loss=F.cross_entropy, lr=0.1, instruments=READ, budget=None).rows()
    )
    assert th.diagnose(perceptron(), data=path, budget=5.0).checked


def test_a_bare_state_dict_is_surveyed_like_its_file(tmp_path):
    state = perceptron().state_dict()
    found = th.survey(state)
    torch.save(state, tmp_path / "weights.pt")
    assert found.rows() == th.survey(tmp_path / "weights.pt").rows()
    assert th.survey({"epoch": 3, "state_dict": state}).rows() == found.rows()
    assert th.diagnose({"model": state}).checked == th.diagnose(state).checked
    with pytest.raises(TypeError, match=r"expected a state dict .* got int"):
        th.survey({"epoch": 3})


def test_weights_on_meta_are_refused_in_one_line():
    model = nn.Linear(6, 3, device="meta")
    for door in (th.survey, th.diagnose, lambda m: th.Watch(m, probe=rows())):
        with pytest.raises(ValueError, match=r"^expected weights, got weight on the meta device.*checkpoint first$"):
            door(model)


@pytest.mark.parametrize("where", ["inputs", "targets"])
def test_a_late_batch_that_is_not_finite_is_named_by_its_number(where):
    x, y = rows()
    x, y = x.clone(), y.float()[:, None].clone()
    (x if where == "inputs" else y)[37] = float("nan")
    batches = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 48, 8)]
    model = nn.Linear(6, 1)
    words = "6 of 48 values of input 1" if where == "inputs" else "1 of 8 values of the target"
    with pytest.raises(ValueError, match=f"{words} NaN or infinite in batch number 5"):
        th.survey(model, data=batches, loss=F.mse_loss, lr=0.1)


def test_splits_and_texts_are_told_what_to_do():
    splits = datasets.DatasetDict({"train": a_dataset(), "test": a_dataset()})
    with pytest.raises(ValueError, match="expected one split of the data, got train, test"):
        th.survey(OfImages(), data=splits)
    with pytest.raises(ValueError, match="expected columns of numbers"):
        th.survey(perceptron(), data=a_frame().assign(a="text"))


class Broken(nn.Module):
    """Runs, and cannot be derived."""

    def __init__(self):
        super().__init__()
        self.inner = perceptron()

    def forward(self, x):
        return Once.apply(self.inner(x))


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, slope):
        return slope @ torch.zeros(5, 5)


def test_what_torch_says_does_not_reach_the_table():
    x, y = rows()
    found = th.survey(Broken(), data=(x, y), loss=F.cross_entropy, lr=0.1, instruments=("sharpness", "signal"))
    (skipped,) = found.skipped
    assert skipped.instrument == "sharpness"
    assert "th.read('sharpness', subject) shows why" in skipped.reason
    assert "mat1" not in str(found.skipped)
