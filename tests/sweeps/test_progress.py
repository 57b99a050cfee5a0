"""The progress bar: for people at a terminal, and only when it takes long."""

from __future__ import annotations

import io

import numpy as np
import pytest

import armillary as arm
from armillary.errors import SweepError
from armillary.sweeps.progress import ERASE, ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_quick_work_shows_nothing():
    terminal, clock = Terminal(), Clock()
    with ProgressBar(10, stream=terminal, clock=clock) as progress:
        for done in range(11):
            clock.now += 0.04
            progress.at(done)
    assert terminal.getvalue() == ""


def test_no_terminal_shows_nothing():
    text, clock = io.StringIO(), Clock()
    with ProgressBar(10, stream=text, clock=clock) as progress:
        clock.now = 100.0
        progress.at(5)
    assert text.getvalue() == ""


def test_long_work_shows_its_share_and_is_erased():
    terminal, clock = Terminal(), Clock()
    with ProgressBar(8, stream=terminal, clock=clock) as progress:
        clock.now = 6.0
        progress.at(6)
        progress.at(7)  # at the same moment: not drawn
        clock.now = 7.0
        progress.at(7)
    bar = "[##############################..........]  75%, 2 s left"
    last = "[###################################.....]  88%, 1 s left"
    assert terminal.getvalue().split(ERASE) == ["", bar, last, ""]


def test_nothing_done_and_too_much_done():
    terminal, clock = Terminal(), Clock()
    with ProgressBar(0, stream=terminal, clock=clock) as progress:
        clock.now = 1.0
        progress.at(0)
        clock.now = 2.0
        progress.at(100)
    assert "   0%, 0 s left" in terminal.getvalue()
    assert " 100%, 0 s left" in terminal.getvalue()


def test_sweeps_count_rows_that_are_done_or_have_failed(monkeypatch):
    shown = []

    def at(self: ProgressBar, done: int, note: str = "") -> None:
        shown.append((done, note))

    def ask(rows):
        if (rows == 3.0).any():
            raise ValueError("three")
        return rows[:, 0]

    monkeypatch.setattr(ProgressBar, "at", at)
    rows = np.arange(6.0)[:, None]
    with pytest.raises(SweepError, match="1 of 3 chunks failed"):
        arm.sweep(ask, rows, executor="threads", chunk=2, progress=True)
    assert [done for done, _ in shown] == [2, 4, 6]
    assert shown[-1][1] == "1 chunks failed"
