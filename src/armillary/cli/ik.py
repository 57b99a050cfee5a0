"""`armillary ik`: joint positions that reach a pose, or a file of them, and why not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.device import Device
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    AXES,
    EXACT,
    FRAME_PAIR,
    JOINTS,
    JSON,
    STATE,
    avoid,
    chosen_solver,
    chosen_state,
    out,
    print_summary,
    row_output,
)
from armillary.cli.table import comma_separated, finite, table
from armillary.cli.targets import FORMS, open_targets, pose_of_text
from armillary.cli.vectors import (
    DEGREES_PER_RADIAN,
    chosen_factors,
    vector_of_text,
)
from armillary.cli.verb import OneOf, option, verb, whole_number
from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, printable, quote
from armillary.ik.arm_methods import METHODS
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.objective import PURPOSES
from armillary.ik.query import TOLERANCE
from armillary.ik.reason import SUCCESSES, Reason, succeeded
from armillary.ik.solution import Answers
from armillary.kernel.search import SearchOptions
from armillary.model.display import plural

Array = npt.NDArray[np.float64]
Reasons = npt.NDArray[np.int8]

SOLVED, NOT_ALL = 0, 1
STARTS: Final = SearchOptions().starts
AT_ONCE = 8192  # targets between two pictures of the progress
JUMPS_SHOWN: Final = 10
DESCRIPTION = f"""\
Print joint positions [m or rad] that put a frame at a pose, or why none do. {FORMS};
metres and radians. All joints between the frame and --relative-to move unless
--joints names them; all others are at home, or as --state or --q say. Poses of a file
give a line of joint positions each, or with --out an array (..., n); NaN where a pose
was not reached. The exit code is 1 unless all were.
"""
ADVICE: Final = {
    Reason.NOT_FOUND: "This proves nothing. Search longer with --starts, begin "
    "elsewhere with --near, or ask for less with --tolerance or --rotation.",
    Reason.INVALID_TARGET: "A matrix needs rows that are orthonormal to 1e-6 and end "
    "with 0,0,0,1; a quaternion has length 1 and comes first; no number may be NaN.",
    Reason.OUT_OF_REACH: "Bring the target nearer, or the arm with --state or --q. "
    "Targets are in metres, in the world unless --relative-to says otherwise.",
    Reason.LIMITS: "Ask for less with --position or --rotation, or let more joints "
    "move; 'armillary info' shows the limits.",
    Reason.TIMEOUT: "This proves nothing. Give the call more time.",
    Reason.IN_COLLISION: "Ask for less with --position or --rotation, or move what is "
    "in the way.",
    Reason.SINGULAR: "This is one of infinitely many; --near chooses among them.",
}


def _base_file(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"{quote(text)} is not of the form NAME=FILE")
    return name, path


@verb(
    "ik",
    (
        *FILE,
        *FRAME_PAIR,
        OneOf(
            (
                option("--pose X,Y,Z,...", "one pose", has_numbers=True),
                option("--poses FILE", "poses, CSV or NPY", is_input=True),
            ),
            required=True,
        ),
        JOINTS,
        *AXES,
        option(
            "--near Q1,Q2,...", "positions of the joints to stay near", has_numbers=True
        ),
        option("--method", "else closed where it can be", choices=METHODS),
        option(
            "--tolerance M,RAD",
            "largest distance and angle; else 1e-6,1e-6",
            has_numbers=True,
        ),
        option("--arm-angle A", "of an arm of seven joints", type=float),
        option("--starts N", f"of a search; else {STARTS}", type=whole_number(1)),
        avoid(
            "only answers where links are farther apart than this [m]; 0 to not touch"
        ),
        EXACT,
        OneOf(
            (
                option("--all", "every answer, by its branch", action="store_true"),
                option(
                    "--best", "of all answers that by this purpose", choices=PURPOSES
                ),
                option("--path", "follow the poses without jumps", action="store_true"),
            )
        ),
        option(
            "--bases NAME=FILE",
            "poses of the base of a manipulator in the world, one for each of --poses; "
            "may be repeated",
            type=_base_file,
            action="append",
        ),
        *STATE,
        JSON,
        out("Q.npy", "answers"),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Solve and print or write; return an exit code: whether all were reached."""
    _check(options)
    query = _query(options)
    if options.poses is not None:
        return _many(query)
    target = pose_of_text(
        options.pose, degrees=options.degrees, position_only=query.position_only
    )
    return _every(query, target) if options.all else _one(query, target)


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together.

    Raises:
        ShapeError: It says what.
    """
    if options.path and options.poses is None:
        raise ShapeError("--path follows the poses of a file: use --poses.")
    if options.bases and options.poses is None:
        raise ShapeError("--bases has a base for each of --poses: use --poses.")
    if options.json and options.poses is not None:
        raise ShapeError("--json is of one pose, not of --poses.")
    refused = {
        "path": ("starts",),
        "best": ("near",),
    }
    for way, others in refused.items():
        for other in others if getattr(options, way) else ():
            if getattr(options, other) is not None:
                name = other.replace("_", "-")
                raise ShapeError(f"--{way} chooses its own way: no --{name}.")


def _query(options: argparse.Namespace) -> PoseQuery:
    cell = open_cell(options)
    state = chosen_state(cell, options)
    device, ik, check = chosen_solver(cell, state, options.frame, options)
    names = device.joint_names
    factors, near = chosen_factors(cell.workcell, names, options), None
    if options.near is not None:
        near = vector_of_text(options.near, "--near")
        if len(near) != len(names):
            raise ShapeError(
                f"--near has {len(near)} numbers; {len(names)} joints move: "
                f"{', '.join(names)}."
            )
        near *= factors
    return PoseQuery(
        device=device,
        ik=ik,
        options=options,
        avoid=check,
        factors=factors,
        near=near,
        asked=_asked(options),
    )


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return what all ways to solve take.

    Raises:
        ShapeError: A tolerance is not two numbers.
    """
    tolerance, arm_angle = TOLERANCE, options.arm_angle
    if options.tolerance is not None:
        numbers = vector_of_text(options.tolerance, "--tolerance")
        if numbers.shape != (2,):
            raise ShapeError("--tolerance takes two numbers: metres and radians.")
        tolerance = float(numbers[0]), float(numbers[1])
    if arm_angle is not None and options.degrees:
        arm_angle /= DEGREES_PER_RADIAN
    return {"tolerance": tolerance, "method": options.method, "arm_angle": arm_angle}


# one target


def _one(query: PoseQuery, target: Array) -> int:
    answer = query.solve(target[None])
    reason, q = Reason(int(answer.reason[0])), answer.q[0]
    solved = reason in SUCCESSES
    known = bool(np.isfinite(q).all())
    if query.options.json:
        print(json.dumps(_object(query, reason, answer.residual[0], q)))
        _write(query, q if solved else np.full_like(q, np.nan))
        return SOLVED if solved else NOT_ALL
    print(reason.sentence + (f": {off(answer.residual[0])}" if known else ""))
    if known:
        print("" if solved else _what(query, reason, q))
        _print_vector(query, q)
    if reason in ADVICE:
        print(ADVICE[reason])
    _write(query, q if solved else np.full_like(q, np.nan))
    return SOLVED if solved else NOT_ALL


def _what(query: PoseQuery, reason: Reason, q: Array) -> str:
    """Return what is said of a vector that does not count: where links touch."""
    if query.avoid is None or reason is not Reason.IN_COLLISION:
        return "the nearest that was found:"
    contacts = query.avoid.contacts(query.device.whole(q))
    return "\n".join(["touching there:", *map(str, contacts), ""])


def _print_vector(query: PoseQuery, q: Array) -> None:
    """Print joints by name, then the whole vector as other verbs take it."""
    numbers = q / query.factors + 0.0
    names = list(map(printable, query.device.joint_names))
    width = max(map(len, names))
    for name, value in zip(names, numbers.tolist(), strict=True):
        print(f"{name:<{width}} {value:16.12f}")
    cell = query.device.cell
    factors = chosen_factors(cell, cell.joint_names, query.options)
    whole = query.device.whole(q) / factors + 0.0
    print(f"\n--q {comma_separated(whole.tolist())}")


def _every(query: PoseQuery, target: Array) -> int:
    answers = query.every(target[None])
    q, reason = answers.q[0] / query.factors + 0.0, answers.reason[0]
    branches = answers.branches or ((),) * len(q)
    if query.options.json:
        rows = zip(branches, answers.residual[0], answers.q[0], reason, strict=True)
        objects = [
            {"branch": branch, **_object(query, Reason(int(why)), left, row)}
            for branch, left, row, why in rows
        ]
        why = answers.why_incomplete(0)
        known = {"complete": not why, "why_incomplete": why}
        print(json.dumps({**known, "answers": objects}))
        return SOLVED if answers.count[0] else NOT_ALL
    if len(q):
        names = [f">{name.rpartition('/')[2]}" for name in query.device.joint_names]
        rows = [
            (" ".join(branch), *map(_nine, numbers), Reason(int(why)).name)
            for branch, numbers, why in zip(branches, q.tolist(), reason, strict=True)
        ]
        for line in table(("branch", *names, "reason"), rows):
            print(line)
    count = int(answers.count[0])
    why = answers.why_incomplete(0)
    kind = f" found; there may be others: {why}" if why else ""
    print(f"{plural(count, 'answer')}{kind}")
    if not count:
        why = Reason(int(query.why_none(target[None])[0]))
        print(f"{why.sentence}\n{ADVICE[why]}")
    _write(query, np.where(answers.success[0][:, None], answers.q[0], np.nan))
    return SOLVED if count else NOT_ALL


def _object(
    query: PoseQuery, reason: Reason, residual: Array, q: Array
) -> dict[str, Any]:
    """Return an answer as it is printed as JSON; null stands for what is unknown."""
    distance, angle = finite(residual.tolist())
    names = query.device.joint_names
    return {
        "reason": reason.name,
        "success": reason in SUCCESSES,
        "distance": distance,
        "angle": angle,
        "joints": dict(zip(names, finite(q.tolist()), strict=True)),
        "q": finite(query.device.whole(q).tolist()),
    }


def _nine(value: float) -> str:
    return f"{value:.9f}" if np.isfinite(value) else "-"


def _write(query: PoseQuery, q: Array) -> None:
    if query.options.out is not None:
        names = query.device.joint_names
        with row_output(query.options, q.shape[:-1], q.shape[-1:], names) as write:
            write(q / query.factors)


# how targets are solved


class TargetAnswers(NamedTuple):
    """The answers to a batch of targets.

    Attributes:
        q: Joint positions [m or rad], shape (k, n), or (k, b, n) with all answers.
        reason: Numbers of `Reason`, shape (k,).
        residual: What remains [m, rad], shape (k, 2).
        jumps: Indices of the targets to which the arm must jump.
    """

    q: Array
    reason: Reasons
    residual: Array
    jumps: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PoseQuery:
    """A solver and the options of its calls.

    Attributes:
        device: The joints that move.
        ik: The solver.
        options: The options of the command line.
        avoid: The check that answers avoid, or None.
        factors: For each joint what makes its number on the command line SI, (n,).
        near: The joint positions to stay near [m or rad], shape (n,), or None.
        asked: What all ways to solve take.
    """

    device: Device
    ik: InverseKinematics
    options: argparse.Namespace
    avoid: CollisionCheck | None
    factors: Array
    near: Array | None
    asked: dict[str, Any]

    @property
    def position_only(self) -> bool:
        """Return whether no rotation of a target counts."""
        return self.options.rotation == "none"

    def solve(self, targets: Array) -> TargetAnswers:
        """Return an answer to each target, shape (k, 4, 4), or the best."""
        if self.options.best is not None:
            purpose = self.options.best
            answer = self.ik.best(targets, purpose, **self.asked, **self._starts)
        else:
            search = SearchOptions(**self._starts) if self._starts else None
            answer = self.ik(
                targets, near=self.near, search_options=search, **self.asked
            )
        return TargetAnswers(answer.q, answer.reason, answer.residual)

    def follow(self, targets: Array, came: Array | None) -> TargetAnswers:
        """Return answers to targets as a path that comes from a vector, if from one."""
        answer, jumps = self.ik.path(targets, start=came, **self.asked)
        return TargetAnswers(
            answer.q, answer.reason, answer.residual, tuple(jumps.tolist())
        )

    def every(self, targets: Array) -> Answers:
        """Return all answers to each target."""
        return self.ik.all(targets, near=self.near, **self.asked, **self._starts)

    def solve_all(self, targets: Array) -> TargetAnswers:
        """Return all answers, NaN for branches without one, and why there is none."""
        answers = self.every(targets)
        none = ~answers.success.any(axis=1)
        reason = np.full(len(targets), Reason.SOLVED, np.int8)
        if none.any():
            reason[none] = self.why_none(targets[none])
        residual = np.where(answers.success[..., None], answers.residual, 0.0)
        q = np.where(answers.success[..., None], answers.q, np.nan)
        return TargetAnswers(q, reason, residual.max(axis=1, initial=0.0))

    def why_none(self, targets: Array) -> Reasons:
        """Return the reason of each target without any answer."""
        reason = self.solve(targets).reason
        return np.where(succeeded(reason), Reason.NOT_FOUND, reason).astype(np.int8)

    @property
    def _starts(self) -> dict[str, Any]:
        starts = self.options.starts
        return {} if starts is None else {"starts": starts}


# a file of targets


def _many(query: PoseQuery) -> int:
    options, tally, jumps = query.options, Tally(), list[int]()
    reading = open_targets(
        options.poses,
        degrees=options.degrees,
        position_only=query.position_only,
        at_once=AT_ONCE,
    )
    bases = {name: _bases_of(path, query) for name, path in options.bases or ()}
    with reading as targets:
        batch = targets.result_batch
        if options.path and len(batch) != 1:
            raise ShapeError(f"A path is one sequence of poses, not a batch {batch}.")
        with ExitStack() as stack:
            write = _sink(query, batch, stack)
            for answers in _answers(query, targets.chunks, bases):
                solved = succeeded(answers.reason)
                jumps += [tally.count + k for k in answers.jumps if solved[k]]
                q = answers.q.copy()
                q[~solved] = np.nan
                write(tally.count, q / query.factors + 0.0)
                tally.add(answers.reason, answers.residual)
    for name, placed in bases.items():
        if len(placed) != tally.count:
            raise _other_count(name, len(placed), f"{tally.count} poses")
    print_summary((*tally.lines(), *_jump_lines(jumps, options.path)), options)
    return SOLVED if tally.all_solved else NOT_ALL


def _bases_of(path: str, query: PoseQuery) -> Array:
    """Return the poses of a base that a file holds, shape (k, 4, 4)."""
    with open_targets(path, degrees=query.options.degrees) as poses:
        return np.concatenate([np.empty((0, 4, 4)), *poses.chunks])


def _other_count(name: str, count: int, poses: str) -> ShapeError:
    return ShapeError(
        f"--bases {name} has {plural(count, 'pose')}, one for each of --poses; here "
        f"are {poses}."
    )


def _jump_lines(jumps: list[int], path: bool) -> Iterator[str]:
    if path:
        shown = ", ".join(map(str, jumps[:JUMPS_SHOWN]))
        more = ", ..." if len(jumps) > JUMPS_SHOWN else ""
        yield plural(len(jumps), "jump") + (f", at {shown}{more}" if jumps else "")


def _sink(
    query: PoseQuery, batch: tuple[int, ...], stack: ExitStack
) -> Callable[[int, Array], None]:
    """Return what takes the number of the first target and answers, in their order."""
    options = query.options
    if options.all and options.out is None:
        return _print_answers
    if options.all:
        closed = query.ik.closed
        if closed is None or options.method == "numeric":
            raise ModelError(
                "A search finds another number of answers for each pose, so --all has "
                "no array to write: leave --out away, and each is a line."
            )
        batch = (*batch, len(closed.branches))
    names = query.device.joint_names
    write = stack.enter_context(row_output(options, batch, (len(names),), names))
    return lambda first, q: write(q)


def _answers(
    query: PoseQuery, chunks: Iterator[Array], bases: dict[str, Array]
) -> Iterator[TargetAnswers]:
    """Yield the answers to the targets of each chunk.

    bases: The pose of the base of manipulators for each target.

    Raises:
        ShapeError: There are fewer of them than targets.
    """
    came, done, asked = query.near, 0, query.asked
    for targets in chunks:
        if bases:
            rows = slice(done, done + len(targets))
            for name, placed in bases.items():
                if len(placed) < rows.stop:
                    raise _other_count(name, len(placed), f"{rows.stop} or more")
            here = {name: placed[rows] for name, placed in bases.items()}
            query = replace(query, asked={**asked, "bases": here})
            done = rows.stop
        if query.options.path:
            answers = query.follow(targets, came)
            # The next chunk goes on from the last vector that is known.
            known = np.flatnonzero(np.isfinite(answers.q).all(axis=1))
            came = answers.q[known[-1]] if known.size else came
            yield answers
        elif query.options.all:
            yield query.solve_all(targets)
        else:
            yield query.solve(targets)


def _print_answers(first: int, q: Array) -> None:
    """Print each answer with the number of its target before it."""
    for k, answers in enumerate(q.tolist(), start=first):
        for row in answers:
            if all(map(np.isfinite, row)):
                print(f"{k},{comma_separated(row)}")


class Tally:
    """How many targets ended with each reason, added up piece by piece."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._counts: dict[Reason, int] = {}
        self._first: dict[Reason, int] = {}
        self._worst = np.zeros(2)

    @property
    def all_solved(self) -> bool:
        """Return whether every target was met."""
        return set(self._counts) <= set(SUCCESSES)

    def add(
        self, reasons: npt.NDArray[Any], residuals: npt.NDArray[np.float64]
    ) -> None:
        """Add targets: numbers of `Reason`, shape (k,), and residuals, (k, 2)."""
        for value, index, count in zip(
            *np.unique(reasons, return_index=True, return_counts=True), strict=True
        ):
            reason = Reason(int(value))
            self._first.setdefault(reason, self.count + int(index))
            self._counts[reason] = self._counts.get(reason, 0) + int(count)
        met = succeeded(reasons)
        worst = residuals[met].max(axis=0, initial=0.0)
        self._worst = np.maximum(self._worst, worst)
        self.count += len(reasons)

    def lines(self) -> Iterator[str]:
        """Yield the summary: what is solved, then each reason and what to do."""
        solved = sum(self._counts.get(reason, 0) for reason in SUCCESSES)
        yield f"{solved} of {plural(self.count, 'target')} solved"
        if solved:
            yield f"  at most {off(self._worst)}"
        for reason, count in sorted(self._counts.items(), key=lambda item: -item[1]):
            if reason is not Reason.SOLVED:
                yield f"{count} {reason.sentence}; the first is {self._first[reason]}"
                yield f"  {ADVICE[reason]}"


def off(residual: npt.NDArray[np.float64]) -> str:
    """Return a residual as text: distance [m] and angle [rad]."""
    return f"{residual[0]:.2g} m and {residual[1]:.2g} rad off"
