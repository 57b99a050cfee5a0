"""Formulas for kernels: an arm's pose, a track with branches, many shapes at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.trace import Program, trace

Array = npt.NDArray[Any]


def pose_of_arm(q: Any) -> Any:
    pose = np.eye(4, dtype=object)
    for k in range(7):
        c, s = np.cos(q[k]), np.sin(q[k])
        turn = np.array(
            [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=object
        )
        x, z = 0.3 * (k % 2), 0.1 * k
        link = np.array([[1, 0, 0, x], [0, 0, -1, z], [0, 1, 0, 0], [0, 0, 0, 1]])
        pose = pose @ link @ turn
    return pose


def place_on_track(s: Any, straight: float = 3.0, radius: float = 1.0) -> Any:
    bend = np.pi * radius
    s = s % (2 * straight + 2 * bend)
    if s < straight:
        return s, -radius
    s = s - straight
    if s < bend:
        return straight + radius * np.sin(s / radius), -radius * np.cos(s / radius)
    s = s - bend
    if s < straight:
        return straight - s, radius
    s = s - straight
    return -radius * np.sin(s / radius), radius * np.cos(s / radius)


def mixed(a: Any, b: Any, m: Any) -> Any:
    """Outputs of all ranks, among them an input and a constant."""
    cube = np.multiply.outer(a, np.array([[b, 1.0], [2.0, b + 1.0]], dtype=object))
    return np.dot(m, a), b + 1.0, cube, a, np.array([1.0, 2.5])


def long_chain(q: Any) -> Any:
    """More operations than one segment holds; late ones need the early ones."""
    links = [np.sin(q[k % 4] + 0.01 * k) for k in range(400)]
    total = list(itertools.accumulate(links, lambda x, y: 0.5 * x * y + q[0]))
    return [total[-1], total[3], links[0] + links[-1], q[3]]


@pytest.fixture(scope="module", autouse=True)
def as_for_users(optimised: None) -> None:
    """What is made of kernels is what users run."""


@pytest.fixture(scope="session")
def arm() -> Program:
    """Pose (4, 4) of q (7,)."""
    return trace(pose_of_arm, name="arm", q=(7,), outputs=["pose"])


@pytest.fixture(scope="session")
def track() -> Program:
    """Two numbers, x and y, of one; it branches."""
    return trace(place_on_track, name="track", s=(), outputs=["x", "y"])


@pytest.fixture(scope="session")
def many() -> Program:
    """Three inputs and five outputs of ranks 0 to 3."""
    outputs = ["product", "next", "cube", "same", "fixed"]
    return trace(mixed, name="many", a=(3,), b=(), m=(2, 3), outputs=outputs)


@pytest.fixture(scope="session")
def long() -> Program:
    """Four numbers of four, in more than one segment."""
    return trace(long_chain, name="long", q=(4,))


@pytest.fixture(scope="session")
def formulas(
    arm: Program, track: Program, many: Program, long: Program
) -> dict[str, Program]:
    """All of them by name."""
    return {program.name: program for program in (arm, track, many, long)}


@pytest.fixture(scope="session")
def draw() -> Callable[..., list[Array]]:
    """Random inputs of a program, from seeded numbers: draw(program, batch)."""

    def arrays(program: Program, *batches: tuple[int, ...], seed: int = 0) -> list[Any]:
        random = np.random.default_rng(seed)
        spread = batches if len(batches) > 1 else batches * len(program.inputs)
        return [
            random.uniform(-3.0, 3.0, (*batch, *port.shape))
            for batch, port in zip(spread, program.inputs, strict=True)
        ]

    return arrays
