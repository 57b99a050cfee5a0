"""Files of results: what is read back, names of CSV, nothing left of a failure."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from armillary.sweeps.row_files import result_file


@pytest.mark.parametrize("row", [(), (3,), (4, 4)])
def test_numbers_are_read_back(tmp_path: Path, row: tuple[int, ...]):
    array = np.random.default_rng(5).normal(size=(6, *row)) * 1e-7
    array.flat[0] = np.nan
    path = tmp_path / "x.csv"
    with result_file(str(path), (6,), row) as append:
        append(array[:2])
        append(array[2:])
        assert not path.exists()
    found = np.loadtxt(path, delimiter=",", ndmin=2)
    assert np.array_equal(found, array.reshape(6, -1), equal_nan=True)


@pytest.mark.parametrize(
    ("names", "first"),
    [(("a/b", "c"), "a/b,c"), (("a,b", "c"), "1,2"), (("1e3", "c"), "1,2")],
)
def test_names_that_are_plain_come_first(tmp_path: Path, names, first: str):
    path = tmp_path / "x.csv"
    with result_file(str(path), (1,), (2,), names=names) as append:
        append(np.array([[1.0, 2.0]]))
    assert path.read_text().splitlines()[0] == first


def test_names_that_read_as_numbers_are_left_out(tmp_path: Path):
    path = tmp_path / "x.csv"
    with result_file(str(path), (1,), (2,), names=("nan", "c")) as append:
        append(np.array([[1.0, 2.0]]))
    assert path.read_text().splitlines() == ["1,2"]


@pytest.mark.parametrize("parts", [[], [1], [3, 4], [0, 2, 0]])
@pytest.mark.parametrize("rest", [(), (4, 4), (2, 0)])
def test_rows_are_read_back(tmp_path: Path, parts: list[int], rest: tuple[int, ...]):
    generator = np.random.default_rng(3)
    arrays = [generator.normal(size=(count, *rest)) for count in parts]
    path = str(tmp_path / "x.npy")
    first = sum(parts) if 0 in rest else 7  # which counts where no numbers follow
    with result_file(path, (first if sum(parts) else 0,), rest) as append:
        for array in arrays:
            append(array)
        assert not os.path.exists(path)
    expected = np.concatenate([np.empty((0, *rest)), *arrays])
    found = np.load(path)
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_the_order_in_memory_does_not_matter(tmp_path: Path):
    array = np.random.default_rng(4).normal(size=(4, 4, 6)).T
    path = str(tmp_path / "x.npy")
    with result_file(path, (0,), (4, 4)) as append:
        append(array)
    assert np.array_equal(np.load(path), array)


def test_a_failure_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "x.npy"
    path.write_text("old")
    with (
        pytest.raises(RuntimeError, match="on the way"),
        result_file(str(path), (0,), (4,)) as append,
    ):
        append(np.zeros((2, 4)))
        raise RuntimeError("on the way")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.npy"]
