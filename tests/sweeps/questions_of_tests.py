"""Functions that sweeps send to other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np


def total(rows):
    return rows.sum(axis=1)


def fails_at(row, rows):
    if (rows[:, 0] == row).any():
        raise ValueError("a bad row")
    return rows[:, 0]


def slow_total(rows):
    time.sleep(0.05)
    return rows.sum(axis=1)


def ends_once(path, rows):
    """End the process, but not the second time."""
    if rows[0, 0] > 0 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return np.asarray(rows[:, 0])
