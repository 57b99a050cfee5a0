"""Questions about the closed loops of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.kernel.arguments import as_inputs
from armillary.kinematics.closing.branch import home_branch
from armillary.kinematics.closing.branches import Branches, LoopAssemblies
from armillary.kinematics.closing.solver import (
    LoopReason,
    loop_reasons,
    solved_near,
    solved_on,
)
from armillary.kinematics.state import State, bound_state, branch_of, home
from armillary.model.workcell import Workcell
from armillary.trace import Port, Program

__all__ = [
    "ClosedLoops",
    "Mobility",
    "branches",
    "close_loops",
    "mobility",
]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClosedLoops:
    """Passive joints of many rows; arrays are read-only.

    Attributes:
        passive: Positions of passive joints, in the order of `passive_names`, shape
            (..., m) [m or rad]; NaN where loops are not closed.
        residual: The largest of the equations of loops, shape (...) [m or rad].
        reason: Why, as numbers of `LoopReason`, shape (...).
    """

    passive: Array
    residual: Array
    reason: npt.NDArray[np.int8]

    @cached_property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return where loops are closed, shape (...)."""
        return np.asarray(self.reason == LoopReason.CLOSED)

    def summary(self) -> dict[str, int]:
        """Return how many rows ended how, most frequent first."""
        return LoopReason.summary(self.reason)

    def __repr__(self) -> str:
        return f"<ClosedLoops: {LoopReason.text(self.reason, self.success)}>"


def close_loops(
    cell: Workcell,
    q: npt.ArrayLike,
    *,
    near: npt.ArrayLike | None = None,
    state: State | None = None,
) -> ClosedLoops:
    """Return where passive joints are at joint positions, and why they are not.

    Args:
        cell: Whose loops.
        q: Joint positions, shape (..., n) [m or rad].
        near: Passive joints near the wanted ones, shape (..., m): loops are closed
            from there, on whatever branch that is.
        state: On whose branch they are closed; on that of home by default.

    Raises:
        ShapeError: `q` or `near` has another number of joints.
        StateError: The state is not one of this cell.
        ModelError: The cell has no loops, or both `near` and `state` are given.
    """
    _check_loops(cell)
    if near is not None and state is not None:
        raise ModelError("close_loops takes near= or state=, not both.")
    port = Port("q", (cell.loop_system.count,))
    (Q,) = as_inputs(Program("close_loops", (port,), (), (), ()), [q])
    branch = home_branch(cell)
    if near is not None:
        passive, residual = solved_near(cell, Q, near)
    else:
        if state is not None:
            branch = branch_of(bound_state(cell, state)) or branch
        passive, residual = solved_on(cell, branch, Q)
    passive, residual = np.asarray(passive), np.asarray(residual)
    failed = ~np.isfinite(passive).all(axis=-1)
    reason = np.zeros(failed.shape, np.int8)
    if failed.any():
        rows = np.broadcast_to(Q, (*failed.shape, Q.shape[-1]))[failed]
        reason[failed] = loop_reasons(cell, rows, branch.seed)
    for array in (passive, residual, reason):
        array.flags.writeable = False
    return ClosedLoops(passive, residual, reason)


def branches(
    cell: Workcell, at: State | npt.ArrayLike | None = None
) -> Mapping[str, State]:
    """Return the assemblies of loops at joint positions, each as a state.

    At one q there are often several ways to assemble a linkage. They belong to
    branches: a branch is all to which straight ways lead from one assembly. `home` is
    that of the cell at home. The others have numbers: first what there is at `home_q`,
    in the order of how far passive joints are from home, then what is found only at
    other q. A linkage is listed once, though several positions of a ball that is made
    of three joints are the same.

    Args:
        cell: Whose loops.
        at: A state, or joint positions, shape (n,) [m or rad]; home by default.

    Raises:
        StateError: The state is not one of this cell.
        ModelError: The cell has no loops, or there are too many assemblies.
    """
    _check_loops(cell)
    if at is None or isinstance(at, State):
        state = home(cell) if at is None else bound_state(cell, at)
        q, passive = state.q.tolist(), state.passive.tolist()
    else:
        (Q,) = as_inputs(
            Program("branches", (Port("q", (cell.loop_system.count,)),), (), (), ()),
            [at],
        )
        if Q.ndim != 1:
            raise ModelError(f"branches takes one q, not an array of shape {Q.shape}.")
        state, q, passive = home(cell), Q.tolist(), cell.home_passive
    known = Branches.of(cell)
    assemblies = LoopAssemblies(cell, (*q, *passive))
    states: dict[str, State] = {}
    for each in assemblies.passive[assemblies.linkages]:
        name, _ = known.named((*q, *each.tolist()))
        states[name] = state.replace(q=q, passive=each)
    return MappingProxyType(states)


@dataclass(frozen=True)
class Mobility:
    """What loops leave free, and what follows.

    Attributes:
        independent: The joints of loops that have a place in q.
        passive: The joints that loops determine.
        found: Those of them that nothing marks as passive.
        free: Joints marked as passive that loops do not determine: they stay in q.
        equations: How many equations the loops have.
        redundant: How many of those hold because the others do.
    """

    independent: tuple[str, ...]
    passive: tuple[str, ...]
    found: tuple[str, ...]
    free: tuple[str, ...]
    equations: int
    redundant: int

    @property
    def count(self) -> int:
        """Return the number of joints that can be moved independently in loops."""
        return len(self.independent)

    def __str__(self) -> str:
        parts = [
            f"loops leave {self.count} of {self.count + len(self.passive)} joints free"
            f" ({', '.join(self.independent)}); {', '.join(self.passive)} follow"
        ]
        if self.found:
            parts.append(f"not marked as passive: {', '.join(self.found)}")
        if self.free:
            parts.append(f"passive, but not determined: {', '.join(self.free)}")
        if self.redundant:
            parts.append(
                f"{self.redundant} of {self.equations} equations are redundant"
            )
        return "; ".join(parts)


def mobility(cell: Workcell) -> Mobility:
    """Return which joints of loops are free, which follow, and why.

    Raises:
        ModelError: The cell has no loops.
    """
    _check_loops(cell)
    system, names = cell.loop_system, cell.joints.all_names
    in_loops = sorted({k for each in system.equations for k in each.joints})
    independent = [k for k in in_loops if k < system.count]
    links = cell.joints.links

    def named(places: Sequence[int]) -> tuple[str, ...]:
        return tuple(names[k] for k in places)

    return Mobility(
        independent=named(independent),
        passive=named(system.passive),
        found=named(system.found),
        free=named([k for k in independent if cell.links[links[k]].passive]),
        equations=sum(each.size for each in system.equations),
        redundant=system.redundant,
    )


def _check_loops(cell: Workcell) -> None:
    if not cell.loop_system.blocks:
        raise ModelError(
            "This cell has no closed loops: give Manipulator(loops=[...]) a Closure "
            "or a Rod."
        )
