"""Progress where there is no terminal: nothing of short work, a line now and then of long."""

import pytest

from theodolite.report import progress


@pytest.mark.parametrize(("pause", "lines"), [(1.0, []), (6.0, ["theodolite: laws, 2 of 4, 9 s left"] * 1)])
def test_a_line_is_said_seldom_and_every_item_comes(monkeypatch, capsys, pause, lines):
    clock = iter(pause * step for step in range(99))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress, "_on_terminal", lambda: False)
    assert list(progress.tracked("abcd", total=4, label="laws", left=lambda: 9.0)) == list("abcd")
    assert capsys.readouterr().err.splitlines()[:1] == lines


def test_a_bar_is_drawn_where_it_is_asked_for_and_a_closed_stream_is_no_error(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert progress._on_terminal()
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setattr(progress.sys, "stderr", None)
    assert not progress._on_terminal()
