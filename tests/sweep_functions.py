"""Functions and a program that sweeps of tests send to other processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import armillary as arm


def total(rows):
    return {"total": rows.sum(axis=1), "sign": np.sign(rows).astype(np.int8)}


def fails_at(value, rows):
    if (rows[:, 0] == value).any():
        raise ValueError("a bad row")
    return rows[:, 0]


def slow_total(seconds, rows):
    time.sleep(seconds)
    return rows.sum(axis=1)


def ends_once(path, rows):
    """End the process that computes, the first time."""
    if rows[0, 0] > 0 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows.sum(axis=1)


FACTOR, TABLE, LOCK, CHECK = 2.0, {"a": np.zeros(3)}, None, None


def helper(rows):
    return rows if len(rows) < 2 else helper(rows[:1])


def uses_globals(rows):
    if len(rows) in {3, 5, 7} and LOCK is None and CHECK is None:
        return FACTOR * TABLE["a"]
    return [helper(row) for row in rows]


def main(out, kind, pause):
    """Sweep, until somebody ends it."""
    from sweep_functions import slow_total as ask  # by its name there

    rows, chunk, ask = np.arange(200.0).reshape(100, 2), 4, partial(ask, float(pause))
    if kind == "threads":
        cell = arm.example("irb2400")
        ask, chunk = partial(cell.ik("tool0"), method="numeric"), 400_000
        rows = cell.fk("tool0")(cell.samples(chunk).rows(0, chunk))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    arm.sweep(ask, rows, out, chunk=chunk, executor=kind)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
