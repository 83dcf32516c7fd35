"""What a watch hears of a training loop, and what it does not listen to; each error is tried in the test of its ailment."""

import torch
from benchmarks import silent_errors as silent

import theodolite as th
from fixtures.watched import Watch


def test_without_a_run_an_optimizer_tells_what_it_holds():
    model = silent.network()
    optimizer = silent.of_another(model)
    x, y = silent.data()
    found = th.diagnose(model, data=(x, y), loss=silent.cross_entropy, optimizer=optimizer, budget=1)
    assert "optimizer-of-another" in {finding.name for finding in found.findings}
    idle = torch.optim.SGD(model.parameters(), lr=0.0)
    found = th.diagnose(model, data=(x, y), loss=silent.cross_entropy, optimizer=idle, budget=1)
    assert "step-size-zero" in {finding.name for finding in found.findings}


def test_copies_of_a_watched_model_are_not_listened_to():
    import copy

    loop = silent.Loop(dropout=0.3)
    watch = Watch(loop.model, optimizer=loop.optimizer, probe=(loop.x[:64], loop.y[:64]), level="cheap")
    copied = copy.deepcopy(loop.model)
    with torch.no_grad():
        for part in range(6):
            copied(loop.x[part : part + 20])
    loop.step(0)
    assert watch.silent == {}


def test_a_dead_network_and_few_rows_are_no_error_of_the_loop():
    torch.manual_seed(0)
    x, y = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1, 1, 0])
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    torch.nn.init.constant_(model[0].bias, -10.0)  # no unit is ever on: gradients arrive and are zero
    optimizer = torch.optim.SGD(reversed(list(model.parameters())), 0.1)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), loss=silent.cross_entropy, level="cheap", every=10)
    for step in range(60):
        row = int(torch.randint(4, ()))  # the same row follows itself once in four
        optimizer.zero_grad()
        silent.cross_entropy(model(x[row : row + 1]), y[row : row + 1]).backward()
        optimizer.step()
        watch(step)
        assert not {"gradient cleared", "batch repeated"} & set(watch.silent)


def test_a_run_of_few_steps_that_stays_in_evaluation_mode_is_told():
    """The first epoch trains, and what evaluates after it is never undone: few of those steps are among the marked ones."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(300, 6), torch.randint(3, (300,))
    watch = Watch(model, optimizer=optimizer, probe=(x[:32], y[:32]), loss=torch.nn.functional.cross_entropy, every=100)
    for step in range(220):
        model.train(step < 30)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[step : step + 32]), y[step : step + 32]).backward()
        optimizer.step()
        watch(step)
    watch.look(220)
    assert "trained-as-evaluated" in [finding.name for finding in watch.findings]
