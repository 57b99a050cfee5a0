"""`-` is stdin, for the cell as for vectors and poses."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import armillary as arm


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    def give(content: bytes) -> None:
        stdin = SimpleNamespace(buffer=io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stdin)

    return give


def test_a_cell(run, file: str, given):
    expected = run("fk", file, "--frame", "tip")
    given(Path(file).read_bytes())
    assert run("fk", "-", "--frame", "tip") == expected


@pytest.mark.parametrize("npy", [False, True])
def test_vectors(run, file: str, cell: arm.Cell, given, npy: bool):
    Q = np.array([[1.0, 2.0, 3.0], [1.5, -0.5, 0.25]])
    stream = io.BytesIO()
    np.save(stream, Q) if npy else np.savetxt(stream, Q, delimiter=",", fmt="%.17g")
    given(stream.getvalue())
    result = run("fk", file, "--frame", "tip", "--q-file", "-")
    rows = np.loadtxt(io.StringIO(result.out), delimiter=",")
    assert np.array_equal(rows.reshape(-1, 4, 4), cell.fk("tip")(Q))


def test_only_one_of_them(run, given):
    given(b"")
    result = run("fk", "-", "--frame", "tip", "--q-file", "-")
    assert result.code == 2
    assert "Only one of file and q-file can be '-'" in result.err
