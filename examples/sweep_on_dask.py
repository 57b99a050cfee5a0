# needs: sweep
"""Stop a sweep in this process, continue on a cluster, and get the same bytes.

Threads make the data set of `ik_data.py` as a whole. Then they make it again, and are
stopped by Ctrl-C when a few chunks are there. A Dask cluster of three workers on this
machine continues, and one of them is killed on the way. All files are equal.

    python sweep_on_dask.py [COUNT]
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from distributed import Client, LocalCluster

import armillary as arm

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
CHUNKS, WORKERS, SOON = 40, 3, 4


def chunks(folder):
    """Return how many chunks are there, with all their arrays."""
    return len(list(folder.glob("q/c.*")))


def contents(folder):
    """Return the bytes of each file of a group by its name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def soon(folder, act):
    """Call a function, in a thread, when a few more chunks are in a group."""
    wanted = chunks(folder) + SOON

    def wait():
        while chunks(folder) < wanted:
            time.sleep(0.002)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def main(folder):
    """Make the data set twice and compare the files."""
    cell = arm.example("irb2400")
    fk, ik = cell.fk("tool0", form="quaternion"), cell.ik("tool0")
    poses, whole, parts = folder / "poses", folder / "whole", folder / "parts"
    chunk = COUNT // CHUNKS

    arm.sweep({"pose": fk}, cell.samples(COUNT), poses)
    began = time.perf_counter()
    arm.sweep(ik, poses / "pose", whole, chunk=chunk)
    print(f"threads: {COUNT:,} rows, {time.perf_counter() - began:.1f} s")

    user = soon(parts, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        arm.sweep(ik, poses / "pose", parts, chunk=chunk)
    except KeyboardInterrupt:
        print(f"stopped: {chunks(parts)} of {CHUNKS} chunks are there")
    user.join()
    assert 0 < chunks(parts) < CHUNKS

    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            host="127.0.0.1",  # nobody else reaches it
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        victim, *others = client.run(os.getpid).values()
        left_when_killed = []

        def kill():
            os.kill(victim, signal.SIGKILL)
            left_when_killed.append(CHUNKS - chunks(parts))

        killer = soon(parts, kill)
        began = time.perf_counter()
        found = arm.sweep(
            ik, poses / "pose", parts, chunk=chunk, executor=client.get_executor()
        )
        print(f"Dask: {found.computed:,} rows, {time.perf_counter() - began:.1f} s")
        killer.join()
        print(f"one worker was killed with {left_when_killed[0]} chunks left to do")
        assert len(others) == WORKERS - 1

    # The check: every file has the same bytes, and no others are there.
    assert left_when_killed[0] > 0
    assert found.computed < COUNT
    assert contents(parts) == contents(whole)
    print(f"{len(contents(parts))} files are equal, byte for byte")


if __name__ == "__main__":  # workers import this file
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
