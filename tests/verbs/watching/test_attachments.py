"""What a watch keeps beside its looks."""

import torch
from torch.nn.functional import cross_entropy

from fixtures.watched import Watch, classes, classifier
from theodolite.verbs.watching.attachments import Attachments


def hooks_of(model, optimizer):
    found = [len(hooks) for m in model.modules() for name, hooks in vars(m).items() if name.endswith("_hooks")]
    return sum(found) + sum(len(hooks) for name, hooks in vars(optimizer).items() if name.endswith("_hooks"))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()


def test_every_hook_is_taken_away_again():
    x, y = classes()
    model = classifier()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    before = hooks_of(model, optimizer)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=2, batch_size=20)
    for number in range(6):
        watch(number)
        step(model, optimizer, x[:20], y[:20])
    assert hooks_of(model, optimizer) > before
    watch.close()
    assert hooks_of(model, optimizer) == before
    assert not any(p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None) for p in model.parameters())


def test_the_weights_before_a_step_are_kept_only_where_a_look_may_follow():
    x, y = classes()
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    attached = Attachments(model, model, optimizer, None)
    attached.expect(near=False)
    step(model, optimizer, x, y)
    assert not attached.training().before
    attached.expect(near=True)
    first = model[0].weight.detach().clone()
    step(model, optimizer, x, y)
    assert torch.equal(attached.training().before["0.weight"], first)
    assert attached.training().steps == 2
    attached.release()
    assert not attached.training().before
    attached.close()


def test_a_model_that_nobody_steps_has_no_last_step():
    attached = Attachments(classifier(), classifier(), None, None)
    assert attached.training().optimizer is None and attached.events is None
    attached.close()
