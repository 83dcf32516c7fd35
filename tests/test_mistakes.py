"""The mistakes people make: each is one line, what was expected, what came, what to do; and nothing of it is called healthy."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

import theodolite as th
from theodolite.cli import main
from theodolite.core.checks import InputError

X = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(64) % 3


def network(outputs=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, outputs))


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


class Several(nn.Linear):
    """A model with two outputs."""

    def __init__(self):
        super().__init__(8, 3)

    def forward(self, x):
        return super().forward(x), x


class Nothing(Several):
    """A model that forgets to return its output."""

    def forward(self, x):
        super().forward(x)


WORDS = ["a sentence", "another one"]
MISTAKES = {
    "the loss as a string": (
        {"loss": "cross_entropy"},
        r"got the string 'cross_entropy'; pass torch.nn.functional.cross_entropy",
    ),
    "the loss by another name": ({"loss": "mse"}, r"got the string 'mse'; pass torch.nn.functional.mse_loss"),
    "the loss as a class": (
        {"loss": nn.CrossEntropyLoss},
        r"got the class CrossEntropyLoss; pass CrossEntropyLoss\(\)",
    ),
    "data as strings": ({"data": WORDS}, "expected data as numbers, got text; encode it first"),
    "inputs as strings": ({"data": (WORDS, Y[:2])}, "expected data as numbers, got text"),
    "an array of strings": ({"data": (np.array(WORDS), np.array([0, 1]))}, "expected arrays of numbers"),
    "inputs of another shape": (
        {"data": (X[:, :5], Y)},
        r"expected 8 numbers per sample at a linear layer, got 5 from inputs of shape \(64, 5\); pass 8 or ",
    ),
    "whole-number inputs": (
        {"data": ((10 * X).long(), Y)},
        r"expected floating-point inputs, got int64; pass inputs.float\(\)",
    ),
    "float labels": (
        {"data": (X, Y.float())},
        r"expected whole-number class labels, got float32; pass labels.long\(\)",
    ),
    "labels from 1 on": (
        {"data": (X, Y + 1)},
        "expected labels from 0 to 2 for 3 outputs, got labels from 1 to 3; pass labels - 1",
    ),
    "labels from -1 on": ({"data": (X, Y - 1)}, "got labels from -1 to 1; pass labels [+] 1"),
    "more labels than outputs": ({"data": (X, torch.arange(64) % 7)}, "got labels from 0 to 6; give the last layer 7"),
    "labels in a column": (
        {"data": (X, Y[:, None])},
        r"expected targets of shape \(64,\), got \(64, 1\); pass .*squeeze",
    ),
    "whole-number targets of a loss for floats": (
        {"data": (X, nn.functional.one_hot(Y)), "loss": binary_cross_entropy_with_logits},
        r"expected targets of type float32, got int64; pass targets.float\(\)",
    ),
    "labels of a single output": (
        {"data": (X[:, :3], Y > 0), "loss": binary_cross_entropy_with_logits, "target": nn.Linear(3, 1)},
        r"expected targets of shape \(64, 1\), got \(64,\); pass targets.float\(\).unsqueeze\(-1\)",
    ),
    "labels of 32 bits": ({"data": (X, Y.int())}, r"expected labels of type int64, got int32; pass labels.long\(\)"),
    "a loss of numbers for classes": (
        {"loss": mse_loss},
        r"expected a loss for 3 classes, got one that refuses labels of shape \(64,\); pass .*cross_entropy",
    ),
    "a loss whose arguments are swapped": (
        {"loss": lambda target, output: cross_entropy(output, target)},
        r"expected a function loss\(output, target\), got loss\(target, output\); swap",
    ),
    "a loss of one part of the output": (
        {"target": Several()},
        r"a tuple of 2, got one for its part 0; pass loss=lambda output, target: loss\(output\[0\], target\)",
    ),
    "lists of numbers": ({"data": (X.tolist(), Y.tolist())}, r"got lists of numbers; pass torch.tensor\("),
    "a generator": ({"data": ((X, Y) for _ in range(2))}, r"got an iterator; pass list\(data\)"),
    "one sample without a batch": ({"data": (X[0], Y[0])}, "expected one sample a row, got a single number"),
    "validation data of another shape": (
        {"validation": (X[:, :5], Y)},
        r"expected 8 numbers per sample at a linear layer, got 5 from inputs of shape \(64, 5\); .* \(in validation=\)",
    ),
    "validation data as a string": ({"validation": "held-out"}, r"got text; .* \(in validation=\)"),
    "a scheduler as the optimizer": (
        {"optimizer": torch.optim.lr_scheduler.StepLR(optimizer_of(network()), 1)},
        "expected an optimizer, got StepLR; pass",
    ),
    "a list of parameters as the optimizer": (
        {"optimizer": list(network().parameters())},
        "got list; pass torch.optim",
    ),
    "the class of a model": ({"target": nn.Linear}, "expected an nn.Module, .* got type; pass the model"),
    "a model without values": ({"target": nn.Linear(8, 3, device="meta")}, "got weight on the meta device"),
    "a model that returns nothing": ({"target": Nothing()}, "got none in its output; wrap it"),
    "fewer labels than inputs": ({"data": (X, Y[:50])}, r"got lengths \[64, 50\]; pass as many targets"),
    "lr as a string": ({"lr": "0.1"}, "expected lr to be a number, got '0.1'; pass it without quotes"),
    "a negative lr": ({"lr": -0.1}, "expected a positive learning rate, got -0.1"),
    "the optimizer as a string": ({"optimizer": "adam"}, r"expected an optimizer, got 'adam'; pass torch.optim.Adam\("),
    "the optimizer as a class": ({"optimizer": torch.optim.SGD}, "got the class SGD; pass torch.optim.SGD"),
    "no samples": ({"data": (X[:0], Y[:0])}, "expected data with at least one sample, got none"),
    "an empty list": ({"data": []}, "expected data with at least one sample, got none"),
    "a device that is not here": ({"device": "xpu:7"}, "expected a device of this machine, got 'xpu:7'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_never_healthy(name):
    given, words = MISTAKES[name]
    with pytest.raises(InputError, match=words) as caught:
        th.diagnose(**{"target": network(), "data": (X, Y), "loss": cross_entropy, **given})
    said = str(caught.value)
    assert said.startswith("expected ") and ", got " in said and "; " in said and "\n" not in said


@pytest.mark.parametrize("name", ["the loss as a string", "the loss as a class", "labels from 1 on", "float labels"])
def test_a_subject_and_a_watch_say_the_same(name):
    given, words = {"data": (X, Y), "loss": cross_entropy} | MISTAKES[name][0], MISTAKES[name][1]
    with pytest.raises(InputError, match=words):
        th.Subject(network(), **given)
    with pytest.raises(InputError, match=words):
        th.Watch(network(), probe=given["data"], loss=given["loss"])


def test_a_label_out_of_range_in_a_later_batch_is_found_before_the_loss_meets_it():
    labels = torch.cat([Y] * 10)
    labels[600] = 3
    with pytest.raises(InputError, match="got labels from 0 to 3; give the last layer 4 outputs"):
        th.diagnose(network(), data=(torch.cat([X] * 10), labels), loss=cross_entropy)


def test_labels_that_a_loss_ignores_are_no_mistake():
    ignored = torch.where(torch.arange(64) % 5 == 0, torch.tensor(-100), Y)
    th.Subject(network(), data=(X, ignored), loss=cross_entropy)
    far = torch.where(ignored < 0, torch.tensor(255), ignored)
    th.Subject(network(), data=(X, far), loss=lambda output, target: cross_entropy(output, target, ignore_index=255))
    th.Subject(network(), data=(X, far), loss=nn.CrossEntropyLoss(ignore_index=255))
    th.Subject(network(1), data=(X, X[:, :1]), loss=mse_loss)


def test_images_with_the_channels_last_are_refused_in_plain_words():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(3))
    model(torch.zeros(1, 3, 8, 8))
    with pytest.raises(InputError, match=r"expected 3 channels from inputs of shape \(64, 8, 8, 3\), got 8; pass"):
        th.diagnose(model, data=(torch.randn(64, 8, 8, 3), Y), loss=cross_entropy)


def test_what_was_not_judged_is_not_healthy():
    without_loss = th.diagnose(network(), data=(X, Y))
    assert (
        not without_loss.healthy
        and "Training was not checked: pass loss=, and data= with targets" in without_loss.headline
    )
    alone = th.diagnose(network())
    assert not alone.healthy and "pass data= with targets and loss=" in alone.headline
    without_targets = th.diagnose(network(), data=X, loss=cross_entropy)
    assert not without_targets.healthy and "Training was not checked" in without_targets.headline
    weights = th.diagnose(network().state_dict())
    assert weights.healthy and "needs the model, its data and its loss" in weights.headline


def test_the_optimizer_of_another_model_is_named():
    findings = th.diagnose(network(), data=(X, Y), loss=cross_entropy, optimizer=optimizer_of(network())).findings
    assert findings[0].name in ("optimizer-of-another", "not-in-optimizer")
    found = next(finding for finding in findings if finding.name == "not-in-optimizer")
    assert found.severity == "critical"
    assert "holds none of the model's parameters" in found.says


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one():
    with pytest.raises(AttributeError, match="has no attribute 'diagnos'; did you mean diagnose"):
        th.diagnos(network())


MODULE = """import torch


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
"""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["survey", "--device", "xpu:7"], "expected a device of this machine, got 'xpu:7'"),
        (["survey", "a_zoo:model", "--data", "good.npz", "--device", "xpu:7"], "expected a device of this machine"),
        (["diagnose", "a_zoo:model", "--data", "good.npz", "--device", "xpu:7"], "expected a device of this machine"),
        (["diagnose", "a_zoo:model", "--data", "far.npz"], "got labels from 1 to 3; pass labels - 1"),
        (["survey", "a_zoo:model", "--data", "far.npz"], "got labels from 1 to 3; pass labels - 1"),
        (["diagnose", "a_zoo:model", "--data", "empty.npz"], "expected data with at least one sample, got none"),
        (["diagnose", "a_zoo:model", "--data", "narrow.npz"], "inputs of shape (64, 5)"),
        (["diagnose", "a_zoo:model", "--data", "good.npz", "--lr", "-1"], "expected a positive learning rate"),
        (["diagnose", "a_zoo:modl", "--data", "good.npz"], "expected a function called modl in a_zoo"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_on_the_command_line_a_mistake_is_one_line_and_status_2(command, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a_zoo.py").write_text(MODULE)
    x, y = X.numpy(), Y.numpy()
    np.savez("good.npz", x=x, y=y)
    np.savez("far.npz", x=x, y=y + 1)
    np.savez("empty.npz", x=x[:0], y=y[:0])
    np.savez("narrow.npz", x=x[:, :5], y=y)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert words in said and said.startswith("theodolite: expected ") and said.count("\n") == 1


def test_a_watch_without_a_loss_says_which_it_assumes(caplog):
    x, y = torch.randn(16, 4, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 3
    th.Watch(nn.Linear(4, 3), probe=(x, y), level="cheap")
    assert [record.getMessage() for record in caplog.records] == [
        "no loss was given: the watch assumes cross_entropy; pass loss= with the one you train on"
    ]
    caplog.clear()
    watch = th.Watch(nn.Linear(4, 3), probe=(x, y), loss=cross_entropy, level="cheap")
    assert not caplog.records and str(watch).startswith("No alarm in 0 measurements")


def test_a_watch_wants_an_optimizer():
    with pytest.raises(InputError, match=r"expected an optimizer, got 'sgd'; pass torch.optim.Adam\("):
        th.Watch(network(), optimizer="sgd", probe=(X, Y), loss=cross_entropy)


def test_an_activation_in_place_of_the_model_is_one_line():
    with pytest.raises(InputError, match="expected an nn.Module as model, got 'gelu'; pass activation='gelu'"):
        th.design("gelu")


def test_words_that_are_no_name_are_answered_with_what_is_about_them(capsys):
    assert main(["explain", "learning rate"]) == 2
    assert "step-too-large or step-too-small" in capsys.readouterr().err


def test_a_mistyped_command_is_answered_with_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["diagnos"])
    assert "did you mean diagnose?" in capsys.readouterr().err
