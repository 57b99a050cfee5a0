"""CSV files of results: what is read back, and their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armillary.cli.result_file import result_file


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
