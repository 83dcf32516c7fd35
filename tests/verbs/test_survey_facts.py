"""What stands beside the readings of a survey."""

import torch
from torch import nn

import theodolite as th
from theodolite.core.question import Answer, Question
from theodolite.core.reading import Reading
from theodolite.io.weights import Listed, weights_of
from theodolite.verbs._survey_facts import UNREAD, facts_of, nothing_read, says_nothing, skips_of, unread


def answers(*readings):
    return [Answer(Question(question="?", cost="free"), readings)]


def test_what_no_reading_speaks_of_is_named_with_its_reason():
    state = {
        "a.weight": torch.ones(3, 3),
        "a.bias": torch.ones(3),
        "b": torch.ones(2, 2),
        "c": torch.ones(2).long(),
        "d": torch.ones(0, 4),
    }
    weights = Listed(weights_of(state), {"tied to b: the same numbers": ("e",)})
    found = unread(th.Subject(weights=weights), answers(Reading(quantity="rank", where="a.weight", measured=1.0)))
    named = {name: why for why, names in found.items() for name in names}
    assert set(named) == {"a.bias", "b", "c", "d", "e"}
    assert named["d"] == "empty" and "int64" in named["c"] and "vectors" in named["a.bias"]
    biases = answers(Reading(quantity="C_b of a layer", where="a.weight", measured=1.0))
    assert "a.bias" not in {name for names in unread(th.Subject(weights=weights), biases).values() for name in names}
    assert unread(th.Subject(nn.Linear(2, 2)), ()) == {}


def test_a_line_names_a_few_and_counts_the_others():
    first, second = skips_of({"empty": ("a", "b", "c", "d", "e"), "classes of the file": ("f",)})
    assert first.instrument == "weights a, b, c and 2 more"
    assert (second.instrument, second.reason) == ("f", "classes of the file")


def test_a_file_without_matrices_is_an_error_that_names_what_it_has():
    subject = th.Subject(weights=weights_of({"steps": torch.arange(3)}))
    named = answers(Reading(quantity=UNREAD, where="steps", measured=1.0, meaning="whole numbers. Others too."))
    assert says_nothing(named) and not says_nothing(answers(Reading(quantity="rank", measured=1.0)))
    assert "steps: whole numbers; pass the file" in str(nothing_read(subject, {}, named))


def test_facts_are_of_the_subject():
    x = torch.randn(8, 3)
    facts = facts_of(th.Subject(nn.Linear(3, 2), data=(x, x[:, :2]), loss=nn.functional.mse_loss, lr=0.5), 1.26)
    assert facts["parameters"] == "8 in 2 tensors (float32)"
    assert (facts["device"], facts["learning rate"], facts["time"]) == ("cpu", "0.5", "1.3 s")
    assert "8" in facts["data"]
    counted = facts_of(th.Subject(weights=weights_of({"a": torch.ones(2, 2), "mask": torch.ones(9).long()})), 0.0)
    assert counted["parameters"].startswith("4 in 1 tensors") and "device" not in counted
