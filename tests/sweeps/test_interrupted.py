"""Nothing is lost: errors name their row, and a second call goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
import sweep_functions
from armillary.errors import SweepError

ROWS = np.arange(200.0).reshape(100, 2)
PROGRAM = Path(sweep_functions.__file__)


def test_functions_run_in_processes(tmp_path: Path):
    found = arm.sweep(sweep_functions.total, ROWS, tmp_path / "out", chunk=7)
    assert np.array_equal(found["total"], ROWS.sum(axis=1))
    assert found["sign"].dtype == np.int8


@pytest.mark.sampled(1)
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_row_that_fails(tmp_path: Path, executor: str):
    ask, path = partial(sweep_functions.fails_at, 2.0 * 57), tmp_path / "out"
    message = r"1 of 13 chunks failed.*\n.*Chunk 7 \(rows 56 to 63\), row 57: .*a bad"
    with pytest.raises(SweepError, match=message) as caught:
        arm.sweep(ask, ROWS, path, chunk=8, executor=executor)
    assert caught.value.kept.path == path
    kept, expected = caught.value.kept["fails_at"], ROWS[:, 0].copy()
    expected[56:64] = np.nan
    assert np.array_equal(kept, expected, equal_nan=True)
    assert len(list(path.glob("fails_at/c.*"))) == 12


def test_failing_rows_of_memory_are_kept():
    ask = partial(sweep_functions.fails_at, 2.0 * 57)
    with pytest.raises(SweepError, match="row 57") as caught:
        arm.sweep(ask, ROWS, chunk=8, executor="threads")
    kept = caught.value.kept["fails_at"]
    assert np.isnan(kept[56:64]).all()
    assert np.array_equal(
        np.delete(kept, slice(56, 64)), np.delete(ROWS[:, 0], slice(56, 64))
    )


def test_the_first_row_fails_at_once():
    with pytest.raises(SweepError, match="row 0"):
        arm.sweep(partial(sweep_functions.fails_at, 0.0), ROWS)


def test_functions_that_cannot_be_sent():
    with pytest.raises(SweepError, match=r"cannot be sent.*lambda"):
        arm.sweep(lambda rows: rows[:, 0], ROWS)
    found = arm.sweep(lambda rows: rows[:, 0], ROWS, executor="threads")
    assert np.array_equal(next(iter(found.values())), ROWS[:, 0])


def test_another_argument_is_another_question(tmp_path: Path):
    one, other = (partial(sweep_functions.fails_at, value) for value in (-1.0, -2.0))
    for _ in range(2):
        arm.sweep({"a": one}, ROWS, tmp_path / "out", executor="threads")
    with pytest.raises(SweepError, match="another question"):
        arm.sweep({"a": other}, ROWS, tmp_path / "out", executor="threads")


@pytest.mark.thorough
def test_drafts_of_killed_workers_are_removed(tmp_path: Path):
    folder, left = tmp_path / "out" / "a", []

    def leaves_a_draft(rows):
        if folder.exists():
            left.append(folder / f".part-{len(left)}")
            left[-1].touch()
        return rows[:, 0]

    arm.sweep({"a": leaves_a_draft}, ROWS, tmp_path / "out", executor="threads")
    assert left
    names = {path.name for path in folder.iterdir()}
    assert names == {"c.0", "zarr.json"}


@pytest.mark.thorough
def test_a_worker_is_killed(tmp_path: Path):
    ask = partial(sweep_functions.ends_once, str(tmp_path / "ended"))
    with pytest.raises(SweepError, match="ended by itself"):
        arm.sweep(ask, ROWS, tmp_path / "out", chunk=10)
    found = arm.sweep(ask, ROWS, tmp_path / "out")
    assert np.array_equal(found["ends_once"], ROWS.sum(axis=1))


@pytest.mark.thorough
def test_an_executor_of_the_user_is_left_open(tmp_path: Path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name in ("one", "two"):
            found = arm.sweep(
                sweep_functions.total, ROWS, tmp_path / name, executor=pool, chunk=9
            )
            assert np.array_equal(found["total"], ROWS.sum(axis=1))


PROGRAM_WITHOUT_FILE = """
import numpy as np
import armillary as arm

def ask(rows):
    return rows

try:
    arm.sweep(ask, np.zeros((3, 2)))
except arm.errors.SweepError as error:
    print(error)
"""


@pytest.mark.thorough
def test_programs_without_a_file():
    """As notebooks are: other processes cannot import their functions."""
    for more in (["-c", PROGRAM_WITHOUT_FILE], ["-"]):
        done = subprocess.run(
            [sys.executable, *more],
            input=PROGRAM_WITHOUT_FILE,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "no file that they could import, as in a notebook" in done.stdout
        assert done.stderr == ""


def test_programs_without_a_guard(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM_WITHOUT_FILE, "utf-8")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True
    )
    assert "guard what the program starts" in done.stdout


def started(*arguments: object) -> subprocess.Popen[str]:
    """The program of sweep_functions, as it begins to sweep."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def wait_for(found, *, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not found():  # once is enough: drafts of files come and go
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_everything_is_killed(tmp_path: Path):
    path = tmp_path / "out"
    process = started(path, "processes", 0.1)
    wait_for(lambda: list(path.glob("slow_total/c.*")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    ask = partial(sweep_functions.slow_total, 0.1)
    left = len(list(path.glob("slow_total/c.*")))
    assert 0 < left < 25
    found = arm.sweep(ask, ROWS, path, executor="threads")
    assert found.computed == 100 - 4 * left
    assert np.array_equal(found["slow_total"], ROWS.sum(axis=1))
    assert not list(path.glob("*/.part-*"))


@pytest.mark.sampled(1)
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_interrupts_end_it(tmp_path: Path, kind: str):
    path = tmp_path / "out"
    process = started(path, kind, 0.2)
    # Drafts of chunks, not of the metadata that is written before.
    wait_for(lambda: [*path.glob("*/zarr.json")] and [*path.glob("*/.part-*")])
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert not said
    if kind == "threads":
        assert not list(path.glob("*/.part-*"))
