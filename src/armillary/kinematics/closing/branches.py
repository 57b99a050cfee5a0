"""The branches of a cell's loops: enumerated and named."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.kinematics.closing.branch import Branch, home_branch
from armillary.kinematics.closing.solver import followed, solved_near, solved_on
from armillary.kinematics.joint_vector import distinct
from armillary.model.fields import kept
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell

__all__ = ["HOME", "Branches", "assemblies"]

Array = npt.NDArray[np.float64]

HOME: Final = "home"
SAME: Final = 1e-6  # [rad, or of the size of a loop]
MOST: Final = 64
STARTS: Final = 256
_LOCK = threading.Lock()


class Branches:
    """The branches of a cell that are known: that of home is the first."""

    def __init__(self, cell: Workcell) -> None:
        """Know the branch of the assembly at home."""
        self.cell = cell
        self._known: dict[str, Branch] = {HOME: home_branch(cell)}

    @classmethod
    def of(cls, cell: Workcell) -> Branches:
        """Return the branches of a cell, which it keeps."""
        return kept(cell, "branches", lambda: cls(cell))

    @property
    def home(self) -> Branch:
        """Return the branch of the assembly at home."""
        return self._known[HOME]

    def named(self, positions: Sequence[float]) -> tuple[str, Branch]:
        """Return the branch of an assembly, and its name.

        positions: Of all joints, loops closed, passive ones last.
        """
        system = self.cell.loop_system
        if tuple(positions) == self.cell.joints.home:
            return HOME, self.home
        x = np.array(positions, dtype=np.float64)
        q, passive = x[: system.count], x[system.count :]
        with _LOCK:
            for name, branch in self._known.items():
                found, _ = solved_on(self.cell, branch, q)
                if self._is_same(found, passive):
                    return name, branch
            for name, branch in self._known.items():  # its table may not reach so far
                found, _ = followed(self.cell, branch.seed[: system.count], x)
                if self._is_same(found, branch.seed[system.count :]):
                    return name, branch
            name, branch = str(len(self._known) + 1), Branch(self.cell, positions)
            self._known[name] = branch
            return name, branch

    def _is_same(self, one: Array, other: Array) -> bool:
        return bool((np.abs(wrapped(self.cell, one - other)) < SAME).all())


def wrapped(cell: Workcell, change: Array) -> Array:
    """Return changes of passive joints in turns to the nearest, of the size of loops.

    change: Shape (..., m) [m or rad].
    """
    system = cell.loop_system
    units = np.array(system.units[system.count :])
    turns = np.array([_turns(cell, k) for k in system.passive])
    whole = np.where(turns, np.round(change / (2.0 * np.pi)) * 2.0 * np.pi, 0.0)
    return (change - whole) / units


def _turns(cell: Workcell, joint: int) -> bool:
    return cell.links[cell.joints.links[joint]].joint.unit is Unit.RADIAN


def assemblies(cell: Workcell, positions: Sequence[float]) -> Iterator[Array]:
    """Yield the passive joints of all assemblies that are found at some q.

    Newton's method starts from many places, each of them random but the given one.

    Args:
        cell: Whose loops.
        positions: Of all joints; passive ones are where the first search begins.

    Raises:
        ModelError: There are too many.
    """
    system = cell.loop_system
    x = np.array(positions, dtype=np.float64)
    q, given = x[: system.count], x[system.count :]
    spread = np.array(
        [np.pi if _turns(cell, k) else 2.0 * system.units[k] for k in system.passive]
    )
    rng = np.random.default_rng(0)
    starts = STARTS * max(len(block.unknowns) for block in system.blocks)
    guesses = given + spread * rng.uniform(-1.0, 1.0, (starts, len(given)))
    guesses[0] = given
    found, _ = solved_near(cell, q, guesses)
    found = found[np.isfinite(found).all(axis=1)]
    near = given + wrapped(cell, found - given) * np.array(system.units[system.count :])
    order = np.argsort(np.abs(near - given).max(axis=1), kind="stable")
    near = near[order]
    kept_rows = distinct(near, SAME)
    if len(kept_rows) > MOST:
        raise ModelError(
            f"The loops have more than {MOST} assemblies there; ask a cell with fewer "
            "loops, or start a state at the passive joints that you mean."
        )
    yield from near[kept_rows]
