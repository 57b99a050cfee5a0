"""`armillary fk`: the numbers of the library, from every kind of input."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.sweeps import row_files

Q = np.random.default_rng(1).uniform(-3.0, 3.0, (57, 3))


def numbers(text: str) -> np.ndarray:
    return np.array([float(word) for word in text.replace(",", " ").split()])


@pytest.mark.parametrize(
    "written",
    [
        ["--q", "1.5,-2e-3,0.25"],
        ["--q=1.5,-2e-3,0.25"],
        ["--q", "1.5", "-2e-3", ".25"],
        ["--q", "1.5,", "-2e-3", ",0.25"],
        ["--q", "1.5 -2e-3 0.25"],
    ],
    ids=" ".join,
)
def test_one_vector(run, file: str, cell: arm.Cell, written: list[str]):
    result = run("fk", "--frame", "tip", *written, file)
    assert result.code == 0, result.err
    expected = cell.fk("tip")(np.array([1.5, -2e-3, 0.25]))
    assert len(result.out.splitlines()) == 4
    assert np.abs(numbers(result.out).reshape(4, 4) - expected).max() < 1e-11


def test_a_negative_number_first(run, file: str, cell: arm.Cell):
    result = run("fk", file, "--q", "-1e-3", "-2", "-.5", "--frame", "cart")
    assert result.code == 0, result.err
    assert numbers(result.out)[3] == pytest.approx(-1e-3)


def test_home_and_relative_to(run, file: str, cell: arm.Cell):
    result = run("fk", file, "--frame", "rail", "--relative-to", "cart")
    assert result.code == 0, result.err
    # The cart's home is its limit nearest to zero, 0.5 m.
    expected = arm.Pose.translation(-0.5, 0, 0).matrix()
    assert np.abs(numbers(result.out).reshape(4, 4) - expected).max() < 1e-11


def test_degrees_turn_angles_alone(run, file: str, cell: arm.Cell):
    result = run("fk", file, "--frame", "tip", "--q", "1,90,45", "--degrees")
    expected = cell.fk("tip")(np.array([1.0, np.pi / 2, np.pi / 4]))
    assert np.abs(numbers(result.out).reshape(4, 4) - expected).max() < 1e-11


def test_out_holds_one_pose(run, file: str, cell: arm.Cell):
    result = run("fk", file, "--frame", "tip", "--q", "1,2,3", "--out", "x.npy")
    assert (result.code, result.out) == (0, "")
    expected = cell.pose("tip", cell.home.replace(q=[1.0, 2, 3]))
    assert np.array_equal(np.load("x.npy"), expected)


@pytest.mark.parametrize("chunk", [1, 7, 57, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_npy_in_npy_out(
    run,
    file: str,
    cell: arm.Cell,
    monkeypatch: pytest.MonkeyPatch,
    chunk: int,
    order: str,
    dtype: type,
):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", chunk)
    given = np.asarray(Q.astype(dtype), order=order)  # type: ignore[call-overload]
    np.save("q.npy", given)
    result = run(
        "fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "x.npy", "--degrees"
    )
    assert (result.code, result.out, result.err) == (0, "", "")
    turned = given * np.array([1.0, np.pi / 180, np.pi / 180])
    found = np.load("x.npy")
    assert found.dtype == np.float64
    assert np.allclose(found, cell.fk("tip")(turned), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 5, 3), (2, 0, 3), (1, 2, 3, 3)])
def test_the_batch_keeps_its_shape(
    run, file: str, cell: arm.Cell, shape: tuple[int, ...]
):
    q = np.random.default_rng(2).normal(size=shape)
    np.save("q.npy", q)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "x.npy")
    assert result.code == 0, result.err
    found = np.load("x.npy")
    assert found.shape == (*shape[:-1], 4, 4)
    assert np.array_equal(found, cell.fk("tip")(q))


CSV = {
    "plain": "1,2,3\n4,5,6\n",
    "spaced, without an end": " 1, 2 ,3\n\n4,5,6e0",
    "with a byte order mark": "\ufeff1,2,3\n4,5,6\n",
    "with comments": "# cart, finger, wheel\n1,2,3 # first\n\n4,5,6\n",
    "of Windows": "1,2,3\r\n4,5,6\r\n",
    "named": "cart,finger,wheel\n1,2,3\n4,5,6\n",
    "named in full, shuffled": "hand/wheel,gantry/cart,hand/finger\n3,1,2\n6,4,5\n",
    "quoted names": '"cart", "finger", "wheel"\n1,2,3\n4,5,6\n',
}


@pytest.mark.parametrize("text", CSV.values(), ids=CSV.keys())
@pytest.mark.parametrize("chunk", [1, 1000])
def test_csv(
    run,
    file: str,
    cell: arm.Cell,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    chunk: int,
):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", chunk)
    Path("q.csv").write_text(text, encoding="utf-8", newline="")
    result = run("fk", file, "--frame", "tip", "--q-file", "q.csv", "--out", "x.npy")
    assert result.code == 0, result.err
    expected = cell.fk("tip")(np.array([[1.0, 2, 3], [4, 5, 6]]))
    found = np.load("x.npy")
    assert found.shape == (2, 4, 4)
    assert np.allclose(found, expected, rtol=0, atol=1e-14)


def test_names_pick_joints(run, file: str, cell: arm.Cell):
    Path("q.csv").write_text("finger\n90\n0\n")
    result = run("fk", file, "--frame", "tip", "--q-file", "q.csv", "--degrees")
    assert result.code == 0, result.err
    cart = cell.home.q[0]
    expected = cell.fk("tip")(np.array([[cart, np.pi / 2, 0.0], [cart, 0.0, 0.0]]))
    rows = [numbers(line) for line in result.out.splitlines()]
    assert np.abs(np.array(rows).reshape(2, 4, 4) - expected).max() < 1e-15


def test_printed_rows_are_exact(run, file: str, cell: arm.Cell):
    np.save("q.npy", Q)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy")
    found = np.array([numbers(line) for line in result.out.splitlines()])
    assert np.array_equal(found.reshape(-1, 4, 4), cell.fk("tip")(Q))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n", "q.csv: the vectors have 2 numbers; 3 are expected, for the joints"),
        ("1,2,3\n4,5\n", "q.csv:2: 2 numbers; the lines before have 3."),
        (
            "1,2,3\n\n4,x,6\n",
            "q.csv:3: 'x' is not a number. Separate numbers by",
        ),
        ("1 2 3\n4 5 6\n", "no joint named '1 2 3' in cell 'lab'"),
        ("1,2,3\n4;5;6\n", "q.csv:2: 1 numbers; the lines before have 3."),
        ("cart,2,3\n", "q.csv:1: the line holds both names and numbers"),
        ("cart,fingr\n1,2\n", "no joint named 'fingr' in cell 'lab'"),
        ("cart,cart\n1,2\n", "names a joint twice"),
        ("\0" * 100, "no joint named"),
        ("1," * (1 << 20), "q.csv:1: the line is longer than 1048576 characters"),
    ],
)
def test_bad_csv(run, file: str, text: str, message: str):
    Path("q.csv").write_text(text)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.csv", "--out", "x.npy")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("armillary: ")
    assert message in result.err
    assert sorted(path.name for path in Path().iterdir()) == [file, "q.csv"]


def test_a_late_change_of_width(run, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", 2)
    Path("q.csv").write_text("1,2,3\n" * 4 + "1,2\n" * 2)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.csv", "--out", "x.npy")
    assert result.code == 2
    assert "q.csv:5: 2 numbers; the lines before have 3." in result.err
    assert not Path("x.npy").exists()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 2)), "the vectors have 2 numbers; 3 are expected"),
        (np.zeros(()), "an array (..., n) of real numbers is needed"),
        (np.zeros((4, 3), dtype=complex), "holds complex128"),
        (np.zeros((4, 3), dtype=bool), "holds bool"),
        (np.array([["a", "b", "c"]]), "holds <U1"),
        (np.zeros(4, dtype=[("cart", float), ("finger", float)]), "real numbers"),
    ],
)
def test_bad_npy(run, file: str, array: np.ndarray, message: str):
    np.save("q.npy", array)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "x.npy")
    assert result.code == 2
    assert result.err.startswith("armillary: q.npy: ")
    assert message in result.err
    assert not Path("x.npy").exists()


def test_pickles_are_not_opened(run, file: str):
    np.save("q.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy")
    assert result.code == 2
    assert result.err.startswith("armillary: q.npy: this NPY file cannot be read:")


@pytest.mark.parametrize("keep", [6, 20, 127, 200])
def test_truncated_npy(run, file: str, keep: int):
    np.save("whole.npy", Q)
    Path("q.npy").write_bytes(Path("whole.npy").read_bytes()[:keep])
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy")
    assert result.code == 2
    assert result.err.startswith("armillary: q.npy: this NPY file cannot be read:")


def test_npy_that_promises_too_much(run, file: str):
    np.save("q.npy", Q)
    data = Path("q.npy").read_bytes()
    for shape in (b"(10**9, 3)", b"(9999999999999999999, 3)", b"(999999999999, 3)"):
        changed = data.replace(b"(57, 3), }" + b" " * len(shape), shape + b", }    ")
        Path("q.npy").write_bytes(changed)
        result = run("fk", file, "--frame", "tip", "--q-file", "q.npy")
        assert result.code == 2
        assert result.err.startswith("armillary: q.npy: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--q", "1,2"], "--q has 2 numbers; cell 'lab' has 3 joints: gantry/cart, "),
        (["--q", "1,b,3"], "--q: 'b' is not a number. Separate numbers by commas."),
        (["--q", ""], "--q has 0 numbers"),
        (["--q", "-inf,nan,1"], "q holds a number that is not finite"),
        (["--q-file", "absent.csv"], "absent.csv: No such file or directory"),
        (["--q-file", "."], ".: this is not a plain file."),
        (["--q-file", os.devnull], "this is not a plain file."),
        (["--out", "no/such/x.npy"], "No such file or directory"),
        (["--relative-to", "crat"], "Did you mean 'cart'?"),
    ],
)
def test_bad_arguments(run, file: str, arguments: list[str], message: str):
    result = run("fk", file, "--frame", "tip", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("armillary: ")
    assert message in result.err


def test_results_are_written_as_npy_or_csv_only(run, file: str):
    result = run("fk", file, "--frame", "tip", "--out", "x.txt")
    assert (result.code, result.out) == (2, "")
    assert "argument --out: 'x.txt' does not end in '.npy' or '.csv'" in result.err


def test_a_file_replaces_itself(run, file: str, cell: arm.Cell):
    np.save("q.npy", Q)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "q.npy")
    assert result.code == 0, result.err
    assert np.array_equal(np.load("q.npy"), cell.fk("tip")(Q))


def test_memory_stays_bounded(run, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", 1000)
    rows = 100_000  # 12.8 MB of poses
    np.save("q.npy", np.zeros((rows, 3)))
    tracemalloc.start()
    try:
        result = run(
            "fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "x.npy"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.code == 0, result.err
    assert np.load("x.npy", mmap_mode="r").shape == (rows, 4, 4)
    assert peak < 4e6


def test_csv_out_is_read_back(run, file: str, cell: arm.Cell):
    np.save("q.npy", Q)
    result = run("fk", file, "--frame", "tip", "--q-file", "q.npy", "--out", "x.csv")
    assert result.code == 0, result.err
    poses = np.loadtxt("x.csv", delimiter=",")
    assert np.array_equal(poses.reshape(-1, 4, 4), cell.fk("tip")(Q))


def test_json(run, file: str, cell: arm.Cell):
    result = run("fk", file, "--frame", "tip", "--q", "1,2,3", "--json")
    found = json.loads(result.out)
    assert found["frame"] == "hand/tip"
    assert found["relative_to"] == "world"
    assert np.allclose(found["pose"], cell.fk("tip")([1.0, 2.0, 3.0]), atol=1e-15)


def test_json_is_of_one_state(run, file: str):
    result = run("fk", file, "--frame", "tip", "--q-file", "q.csv", "--json")
    assert result.code == 2
    assert "of one state" in result.err


@pytest.mark.parametrize("out", [False, True])
def test_poses_that_are_not_finite_are_counted(
    run, file: str, tmp_path: Path, out: bool
):
    q = Q.copy()
    q[[3, 17, 40], [0, 1, 2]] = np.nan
    np.save(tmp_path / "q.npy", q)
    given = ["--out", str(tmp_path / "X.npy")] if out else []
    result = run(
        "fk", file, "--frame", "tip", "--q-file", str(tmp_path / "q.npy"), *given
    )
    assert result.code == 1
    assert result.err.startswith(
        "2 of 57 poses are not finite: a joint position is NaN"
    )
    poses = numbers(result.out) if not out else np.load(tmp_path / "X.npy")
    missing = np.isnan(poses.reshape(57, 16)).any(axis=1)
    assert np.flatnonzero(missing).tolist() == [3, 17]  # the third joint is behind it


def test_a_single_pose_that_is_not_finite_is_reported(run, tmp_path: Path):
    """The slider of a lever is pulled out of its range."""
    joint = arm.joints.FourBarSlider(nominal=1.0, lever=1.0, opposite=1.0)
    links = [arm.Link(name="base"), arm.Link(name="lever", parent="base", joint=joint)]
    path = tmp_path / "lever.cell.json"
    arm.save(arm.Cell(manipulators=[arm.Manipulator(name="a", links=links)]), path)
    for q, code, told in (("0.5", 0, ""), ("5", 1, "1 of 1 poses are not finite")):
        result = run("fk", str(path), "--frame", "lever", "--q", q)
        assert result.code == code
        assert result.err.startswith(told)
