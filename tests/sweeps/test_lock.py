"""One sweep at a time writes to a path; a lock ends with its process."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import SweepError
from armillary.sweeps import lock

SAMPLES = np.arange(10.0).reshape(5, 2)


@pytest.fixture(params=["locks", "no locks"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run on a file system with locks, and on one that has none."""

    def refuses(handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if request.param == "no locks":
        monkeypatch.setattr(lock, "_lock", refuses)


class Second:
    """A second sweep of the same question, begun while the first one asks it."""

    def __init__(self) -> None:
        self.path, self.options = Path(), {}
        self.calls, self.message = 0, ""

    def begin(self) -> None:
        self.calls += 1
        if self.calls == 2:  # the first call is for the shapes of results
            with pytest.raises(SweepError) as caught:
                arm.sweep(asks, SAMPLES, self.path, executor="threads", **self.options)
            self.message = str(caught.value)


SECOND = Second()


def asks(rows):
    SECOND.begin()
    return rows[:, 0]


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("name", ["out", "out.zarr", "out.npy", "out.npz"])
def test_the_second_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch, name: str
):
    monkeypatch.setattr(sys.modules[__name__], "SECOND", second := Second())
    second.path = path = tmp_path / name
    if name.endswith(".npz"):
        second.options = {"reduce": arm.sweeps.Count(of="asks")}
    found = arm.sweep(
        asks, SAMPLES, path, executor="threads", chunk=2, **second.options
    )
    assert found.computed == 5
    assert f"(process {os.getpid()} on {socket.gethostname()})" in second.message
    assert name in second.message
    if not name.endswith(".npy"):
        again = arm.sweep(asks, SAMPLES, path, executor="threads", **second.options)
        assert again.computed == 0
    assert os.listdir(tmp_path) == [name]


@pytest.mark.usefixtures("locks")
def test_links_to_a_group_share_its_lock(tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "out")
    with (
        lock.only_sweep(tmp_path / "out"),
        pytest.raises(SweepError, match="Another sweep"),
        lock.only_sweep(tmp_path / "elsewhere" / "link"),
    ):
        pass


@pytest.mark.usefixtures("locks")
def test_what_ended_processes_leave_does_not_block(tmp_path: Path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    said = json.dumps({"process": done.pid, "machine": socket.gethostname()})
    for name in (".out.lock", ".out.own"):
        (tmp_path / name).write_text(said)
    with (
        lock.only_sweep(tmp_path / "out"),
        pytest.raises(SweepError),
        lock.only_sweep(tmp_path / "out"),
    ):
        pass
    with lock.only_sweep(tmp_path / "out"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be removed")
@pytest.mark.usefixtures("locks")
def test_a_lock_whose_file_is_removed_ends_quietly(tmp_path: Path):
    with lock.only_sweep(tmp_path / "out"):
        (file,) = tmp_path.iterdir()
        file.unlink()


@pytest.mark.parametrize("said", ['{"process": 1, "machine": "other"}', "", "[]"])
def test_other_machines_are_not_overruled(tmp_path: Path, monkeypatch, said: str):
    """Where nobody can know whether a sweep goes on: the message names the file."""

    def refuses(handle: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(lock, "_lock", refuses)
    (tmp_path / ".out.own").write_text(said)
    with (
        pytest.raises(SweepError, match=r"remove .*\.out\.own"),
        lock.only_sweep(tmp_path / "out"),
    ):
        pass
    assert (tmp_path / ".out.own").read_text() == said


def test_other_errors_of_the_system_are_not_taken_for_missing_locks(
    tmp_path: Path, monkeypatch
):
    def fails(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(lock, "_lock", fails)
    with pytest.raises(OSError, match="output"), lock.only_sweep(tmp_path / "out"):
        pass


HOLDS = """
import os, sys
from pathlib import Path
from armillary.sweeps.lock import only_sweep

with only_sweep(Path(sys.argv[1])):
    if os.fork() == 0:  # it lives on, and its copy of the lock must not
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)
    sys.stdin.read()
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_killed_process_holds_nothing(tmp_path: Path):
    path = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with (
        pytest.raises(SweepError, match=f"process {process.pid} on"),
        lock.only_sweep(path),
    ):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with lock.only_sweep(path):
        pass
    process.stdin.close()
    process.stdout.close()
    assert os.listdir(tmp_path) == []
