"""A subject from whatever people pass."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.verbs.subjects import subject_of, subject_to_judge


def test_modules_subjects_and_state_dicts():
    model = nn.Linear(3, 2)
    assert subject_of(model).model is model
    assert subject_of(model.state_dict()).model is None
    whole = Subject(model)
    assert subject_of(whole) is whole
    with pytest.raises(TypeError, match="inside the Subject"):
        subject_of(whole, lr=0.1)


def test_a_diagnosis_takes_facts_beside_a_subject_and_a_step_size_alone():
    model = nn.Linear(3, 2)
    data = (torch.randn(20, 3), torch.randint(0, 2, (20,)))
    found = subject_to_judge(Subject(model), data=data, loss=nn.functional.cross_entropy, lr=0.5)
    assert isinstance(found.optimizer, torch.optim.SGD) and found.lr == 0.5
    broken = nn.Linear(3, 2)
    nn.init.constant_(broken.weight, float("nan"))
    assert subject_to_judge(broken, data=data).model is broken  # a diagnosis finds faults itself
    with pytest.raises(TypeError, match="expected an nn.Module"):
        subject_to_judge(3)
