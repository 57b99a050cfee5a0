"""Sweeps on a Dask cluster give what threads give, also when a worker is killed."""

from __future__ import annotations

import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
import sweep_functions
from armillary.errors import SweepError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the cluster itself

ROWS = np.arange(200.0).reshape(100, 2)


@pytest.fixture(scope="module")
def client():
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_it_is_what_threads_give(cell: arm.Cell, client, tmp_path: Path):
    samples = cell.samples(3000)
    asked = {"pose": cell.fk("tool0"), "touch": cell.collision()}
    found = arm.sweep(
        asked, samples, tmp_path / "out", executor=client.get_executor(), chunk=400
    )
    expected = arm.sweep(asked, samples, chunk=400)
    for name in expected:
        assert np.array_equal(found[name], expected[name])
    X = expected["pose"]
    found = arm.sweep(cell.ik("tool0"), X, executor=client.get_executor(), chunk=700)
    assert np.array_equal(found["q"], cell.ik("tool0")(X).q)


@pytest.mark.thorough
def test_functions_without_a_module(client):
    found = arm.sweep(
        {"a": lambda rows: 2.0 * rows}, ROWS, executor=client.get_executor(), chunk=9
    )
    assert np.array_equal(found["a"], 2.0 * ROWS)


@pytest.mark.thorough
def test_a_worker_is_killed(client, tmp_path: Path):
    ask = partial(sweep_functions.ends_once, str(tmp_path / "ended"))
    pool = client.get_executor()
    found = arm.sweep(ask, ROWS, tmp_path / "out", executor=pool, chunk=5)
    assert (tmp_path / "ended").exists()
    assert np.array_equal(found["ends_once"], ROWS.sum(axis=1))


def test_a_client_is_not_an_executor(client):
    with pytest.raises(SweepError, match=r"client\.get_executor\(\)"):
        arm.sweep(sweep_functions.total, ROWS, executor=client)


def test_paths_do_not_depend_on_the_folder(client, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # workers stay where they were
    arm.sweep(sweep_functions.total, ROWS, "out", executor=client.get_executor())
    assert len(list(tmp_path.glob("out/total/c.*"))) == 1


@pytest.mark.thorough
def test_the_scheduler_is_lost(tmp_path: Path):
    path, ask = tmp_path / "out", partial(sweep_functions.slow_total, 0.1)
    cluster = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )

    def close():
        while not list(path.glob("*/c.*")):
            time.sleep(0.01)
        cluster.close()

    with cluster, distributed.Client(cluster) as client:
        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(SweepError, match="lost its scheduler"):
            arm.sweep(ask, ROWS, path, executor=client.get_executor(), chunk=4)
        closing.join()
    found = arm.sweep(ask, ROWS, path, executor="threads")
    assert 0 < found.computed < len(ROWS)
    assert np.array_equal(found["slow_total"], ROWS.sum(axis=1))
