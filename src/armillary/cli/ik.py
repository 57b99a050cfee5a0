"""`armillary ik`: joint positions that reach a pose, or a file of them, and why not."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.cli.collision_check import collision_check
from armillary.cli.ik_query import Query, QueryResult
from armillary.cli.input import add_file, open_cell
from armillary.cli.joints import si_factors
from armillary.cli.options import (
    add_axes,
    add_frame_pair,
    add_json,
    add_out,
    add_state,
    chosen_axes,
    chosen_names,
    chosen_state,
    whole_number,
)
from armillary.cli.progress import Progress
from armillary.cli.result_file import result_file
from armillary.cli.summary import ADVICE, Tally, off
from armillary.cli.table import comma_separated, finite, table
from armillary.cli.targets import FORMS, open_targets, pose_of_text
from armillary.errors import ModelError, ShapeError, printable
from armillary.ik.inverse_kinematics import METHODS
from armillary.ik.objective import PURPOSES
from armillary.ik.reason import SUCCESSES, Reason, succeeded
from armillary.kernel.search import SearchOptions
from armillary.model.display import plural

Array = npt.NDArray[np.float64]

SOLVED, NOT_ALL = 0, 1
STARTS = SearchOptions().starts
AT_ONCE = 8192  # targets between two pictures of the progress
JUMPS_SHOWN = 10
DESCRIPTION = f"""\
Print joint positions [m or rad] that put a frame at a pose, or why none do. {FORMS};
metres and radians. All joints between the frame and --relative-to move unless
--joints names them; all others are at home, or as --state or --q say. Poses of a file
give a line of joint positions each, or with --out an array (..., n); NaN where a pose
was not reached. The exit code is 1 unless all were.
"""


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "ik", help="joint positions that reach a pose, or why none do",
        description=DESCRIPTION,
    )  # fmt: skip
    add_file(parser)
    add_frame_pair(parser)
    targets = parser.add_mutually_exclusive_group(required=True)
    targets.add_argument("--pose", metavar="X,Y,Z,...", help="one pose")
    targets.add_argument("--poses", metavar="FILE", help="poses, CSV or NPY")
    parser.add_argument(
        "--joints", metavar="A,B,...", type=chosen_names, help="which joints may move"
    )
    add_axes(parser)
    parser.add_argument(
        "--near", metavar="Q1,Q2,...", help="positions of the joints to stay near"
    )
    parser.add_argument("--method", choices=METHODS, help="else closed where it can be")
    parser.add_argument(
        "--tolerance",
        metavar="M,RAD",
        help="largest distance and angle; else 1e-6,1e-6",
    )
    parser.add_argument(
        "--arm-angle", metavar="A", type=float, help="of an arm of seven joints"
    )
    parser.add_argument(
        "--starts",
        metavar="N",
        type=whole_number(1),
        help=f"of a search; else {STARTS}",
    )
    parser.add_argument(
        "--avoid",
        metavar="M",
        type=float,
        help="only answers where links are farther apart than this [m]; 0 to not touch",
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--all", action="store_true", help="every answer, by its branch")
    ways.add_argument(
        "--best", choices=PURPOSES, help="of all answers that by this purpose"
    )
    ways.add_argument(
        "--path", action="store_true", help="follow the poses without jumps"
    )
    add_state(parser)
    add_json(parser)
    add_out(parser, "Q.npy", "answers")
    parser.set_defaults(run=run)


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


def _query(options: argparse.Namespace) -> Query:
    cell = open_cell(options)
    state = chosen_state(cell, options)
    device = cell.device(
        joints=options.joints,
        base=options.relative_to,
        ends=options.frame,
        state=state,
    )
    avoid = None
    if options.avoid is not None:
        avoid = collision_check(cell, state, options.avoid)
    ik = device.ik(
        position=chosen_axes(options.position),
        rotation=chosen_axes(options.rotation),
        axes=options.axes,
        avoid=avoid,
    )
    return Query(device, ik, options, avoid)


# one target


def _one(query: Query, target: Array) -> int:
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


def _what(query: Query, reason: Reason, q: Array) -> str:
    """Return what is said of a vector that does not count: where links touch."""
    if query.avoid is None or reason is not Reason.IN_COLLISION:
        return "the nearest that was found:"
    contacts = query.avoid.contacts(query.device.whole(q))
    return "\n".join(["touching there:", *map(str, contacts), ""])


def _print_vector(query: Query, q: Array) -> None:
    """Print joints by name, then the whole vector as other verbs take it."""
    numbers = q / query.factors + 0.0
    names = list(map(printable, query.device.joint_names))
    width = max(map(len, names))
    for name, value in zip(names, numbers.tolist(), strict=True):
        print(f"{name:<{width}} {value:16.12f}")
    cell = query.device.cell
    factors = si_factors(cell, cell.joint_names) if query.options.degrees else 1.0
    whole = query.device.whole(q) / factors + 0.0
    print(f"\n--q {comma_separated(whole.tolist())}")


def _every(query: Query, target: Array) -> int:
    answers = query.every(target[None])
    q, reason = answers.q[0] / query.factors + 0.0, answers.reason[0]
    branches = answers.branches or ((),) * len(q)
    if query.options.json:
        rows = zip(branches, answers.residual[0], answers.q[0], reason, strict=True)
        found = [
            {"branch": branch, **_object(query, Reason(int(why)), left, row)}
            for branch, left, row, why in rows
        ]
        print(json.dumps({"complete": answers.complete, "answers": found}))
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
    kind = "" if answers.complete else " found; there may be others"
    print(f"{plural(count, 'answer')}{kind}")
    if not count:
        why = Reason(int(query.why_none(target[None])[0]))
        print(f"{why.sentence}\n{ADVICE[why]}")
    _write(query, np.where(answers.success[0][:, None], answers.q[0], np.nan))
    return SOLVED if count else NOT_ALL


def _object(query: Query, reason: Reason, residual: Array, q: Array) -> dict[str, Any]:
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


def _write(query: Query, q: Array) -> None:
    if query.options.out is not None:
        names = query.device.joint_names
        with result_file(
            query.options.out, q.shape[:-1], q.shape[-1:], names=names
        ) as append:
            append(q / query.factors)


# a file of targets


def _many(query: Query) -> int:
    options, tally, jumps = query.options, Tally(), list[int]()
    reading = open_targets(
        options.poses, degrees=options.degrees, position_only=query.position_only
    )
    with reading as targets:
        batch = (0,) if targets.batch is None else targets.batch
        if options.path and len(batch) != 1:
            raise ShapeError(f"A path is one sequence of poses, not a batch {batch}.")
        with contextlib.ExitStack() as stack:
            write = _sink(query, batch, stack)
            progress = stack.enter_context(Progress(targets.size))
            for piece, done in _pieces(query, targets.chunks):
                met = succeeded(piece.reason)
                jumps += [tally.count + k for k in piece.jumps if met[k]]
                write(tally.count, piece.q / query.factors + 0.0)
                tally.add(piece.reason, piece.residual)
                progress.at(done)
    # Without a file the answers go to stdout, and it must hold nothing else.
    stream = sys.stderr if options.out is None else sys.stdout
    for line in (*tally.lines(), *_jump_lines(jumps, options.path)):
        print(line, file=stream)
    return SOLVED if tally.all_solved else NOT_ALL


def _jump_lines(jumps: list[int], path: bool) -> Iterator[str]:
    if path:
        shown = ", ".join(map(str, jumps[:JUMPS_SHOWN]))
        more = ", ..." if len(jumps) > JUMPS_SHOWN else ""
        yield plural(len(jumps), "jump") + (f", at {shown}{more}" if jumps else "")


def _sink(
    query: Query, batch: tuple[int, ...], stack: contextlib.ExitStack
) -> Callable[[int, Array], None]:
    """Return what takes the number of the first target and answers, in their order."""
    options, n = query.options, len(query.factors)
    if options.out is None:
        return _print_answers if options.all else _print_rows
    if options.all:
        closed = query.ik.closed
        if closed is None or options.method == "numeric":
            raise ModelError(
                "A search finds another number of answers for each pose, so --all has "
                "no array to write: leave --out away, and each is a line."
            )
        batch = (*batch, len(closed.branches))
    names = query.device.joint_names
    append = stack.enter_context(result_file(options.out, batch, (n,), names=names))
    return lambda first, q: append(q)


def _pieces(
    query: Query, chunks: Iterator[tuple[Array, int]]
) -> Iterator[tuple[QueryResult, int]]:
    """Yield the answers to targets, NaN where there are none, and how much is read."""
    came = query.near
    for targets, done in chunks:
        for k in range(0, len(targets), AT_ONCE):
            part = targets[k : k + AT_ONCE]
            if query.options.path:
                piece = query.follow(part, came)
                known = np.flatnonzero(np.isfinite(piece.q).all(axis=1))
                came = piece.q[known[-1]] if known.size else came
            elif query.options.all:
                piece = query.solve_all(part)
            else:
                piece = query.solve(part)
            missed = ~succeeded(piece.reason)
            q = piece.q.copy()
            q[missed] = np.nan
            yield piece._replace(q=q), done


def _print_rows(first: int, q: Array) -> None:
    for row in q.tolist():
        print(comma_separated(row))


def _print_answers(first: int, q: Array) -> None:
    """Print each answer with the number of its target before it."""
    for k, answers in enumerate(q.tolist(), start=first):
        for row in answers:
            if all(map(np.isfinite, row)):
                print(f"{k},{comma_separated(row)}")
