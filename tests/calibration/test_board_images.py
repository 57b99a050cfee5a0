"""A camera on the hand sees a board: neither is known, and no start is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator
from armillary.calibration.measurements import BoardImages
from armillary.errors import ModelError

CAMERA = (900.0, 910.0, 640.0, 360.0)
x, y = np.meshgrid(0.03 * np.arange(6), 0.03 * np.arange(5))
BOARD = np.stack([x.ravel(), y.ravel(), np.zeros(30)], axis=1)
NEARLY_A_LINE = np.concatenate([BOARD[:29] * [1.0, 0.0, 0.0], BOARD[29:]])


def lab() -> Cell:
    board = Manipulator(name="board", links=[Link(name="corners")])
    return arm.example("irb2400").add(board)


def pictures(
    cell: Cell, seed: int, noise: float
) -> tuple[list[str], np.ndarray, BoardImages]:
    """Return names of unknown poses, their true values, and what a camera sees."""
    names = list(cell.parameters(["tool0", "board.mount"]))
    rng = np.random.default_rng(seed)
    hand = [0.05, 0.02, 0.1, 0.1, -0.2, 1.0]
    Q = rng.uniform(-0.5, 0.5, (10, 6)) * [1.0, 0.4, 0.4, 1.0, 0.6, 2.0]
    # The board is somewhere in front of the camera in the middle of its motions.
    middle = cell.fk("tool0", parameters=names[:6])(np.zeros(6), hand)
    flipped = arm.Pose.from_rpy(0.3, 0.2, 0.1, (-0.1, -0.05, 0.7)).matrix()
    where = middle @ flipped
    placed = cell.mount("board", pose=arm.Pose.from_matrix(where))
    p = np.array([*hand, *np.zeros(6)])
    kernel = placed.fk("corners", relative_to="tool0", parameters=names)
    X = kernel(Q, p)
    seen = BOARD @ X[:, :3, :3].transpose(0, 2, 1) + X[:, None, :3, 3]
    visible = (seen[..., 2] > 0.1).all(axis=1)
    assert visible.sum() >= 6
    fx, fy, cx, cy = CAMERA
    pixels = seen[..., :2] / seen[..., 2:] * (fx, fy) + (cx, cy)
    pixels = pixels + rng.normal(0.0, noise, pixels.shape)
    images = BoardImages(
        "corners",
        Q[visible],
        pixels[visible],
        board=BOARD,
        camera=CAMERA,
        relative_to="tool0",
        sigma=max(noise, 0.1),
    )
    truth = placed.with_parameters(dict(zip(names, p, strict=True)))
    return names, truth.fk("corners")(np.zeros(6)), images


@pytest.mark.parametrize("seed", range(3))
def test_hand_and_board_are_found(seed: int) -> None:
    cell = lab()
    names, board, images = pictures(cell, seed, 0.0)
    found = arm.calibrate(cell, images, names)
    assert found.noise < 1e-6
    np.testing.assert_allclose(
        found.cell.fk("corners")(np.zeros(6)), board, rtol=0, atol=1e-7
    )
    hand = [0.05, 0.02, 0.1, 0.1, -0.2, 1.0]
    np.testing.assert_allclose(found.values[:6], hand, atol=1e-7)


def test_errors_are_those_stated() -> None:
    cell, hand = lab(), np.array([0.05, 0.02, 0.1, 0.1, -0.2, 1.0])
    z = []
    for seed in range(4):
        names, _, images = pictures(cell, seed, 0.3)
        found = arm.calibrate(cell, images, names)
        assert 0.9 < found.noise < 1.1
        z += list((found.values[:6] - hand) / found.std[:6])
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.5


def test_derivatives_of_pixels_are_those_of_differences() -> None:
    cell = lab()
    names, _, images = pictures(cell, 0, 0.0)
    p = np.random.default_rng(3).normal(0.0, 0.02, 12)
    p[:6] += [0.05, 0.02, 0.1, 0.1, -0.2, 1.0]
    work = arm.calibrate(cell, images, names).cell.workcell
    p[6:] *= 0.1
    p[:6] -= [0.05, 0.02, 0.1, 0.1, -0.2, 1.0]
    rates = images.compared(work, names, p).rates
    for k, unit in enumerate(np.eye(12)):
        ends = [images.compared(work, names, p + s * 1e-6 * unit) for s in (1, -1)]
        slope = (ends[0].residuals - ends[1].residuals) / 2e-6
        np.testing.assert_allclose(rates[..., k], slope, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"board": BOARD + 0.1}, "z = 0"),
        ({"board": BOARD * [1.0, 0.0, 0.0]}, "three on one line"),
        ({"board": NEARLY_A_LINE}, "three on one line"),
        ({"board": BOARD * 1000.0}, "millimetres"),
        ({"camera": "wide"}, "fx, fy, cx and cy"),
        ({"camera": (900.0, 900.0)}, "fx, fy, cx and cy"),
        ({"camera": (-900.0, 900.0, 0.0, 0.0)}, "above 0"),
        ({"board": BOARD[:7]}, r"\(n, 7, 2\)"),
    ],
)
def test_what_is_refused(change: Any, message: str) -> None:
    options: dict[str, Any] = {"board": BOARD, "camera": CAMERA, "relative_to": "tool0"}
    with pytest.raises(ModelError, match=message):
        BoardImages(
            "corners", np.zeros((2, 6)), np.zeros((2, 30, 2)), **options | change
        )
