"""`armillary collide`: which links touch, and which are nearest to that."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    EXACT,
    JSON,
    MARGIN,
    STATES,
    chosen_state,
    collision_check,
    out,
    print_summary,
    written_answers,
)
from armillary.cli.table import finite, number, table
from armillary.cli.vectors import open_joint_file
from armillary.cli.verb import option, verb, whole_number
from armillary.collision.check import CollisionCheck, Contact
from armillary.errors import ModelError, printable
from armillary.kinematics.state import State
from armillary.model.display import plural

Array = npt.NDArray[np.float64]

FREE, TOUCHING, UNTESTED = 0, 1, 2
NEAREST: Final = 5
AT_ONCE: Final = 4096  # touching vectors whose pairs are compared at once
HEADER: Final = ">distance", "link", "link", "point on the first", "on the second"
DECIMALS: Final = 6
DESCRIPTION = f"""\
Print the pairs of links that touch, and the {NEAREST} nearest others: their distance
[m], below 0 where they overlap, the two shapes and their nearest points in the world.
The cell is at home, or as --state or --q say. Of the joint vectors of a file those
that touch are printed, one a line: its number, the least distance, and both links; or
with --out the least distance of every vector is written, shape (...). The exit code
is 1 if any links touch, and 2 if no pair of links is tested.
"""


@verb(
    "collide",
    (
        *FILE,
        *STATES,
        MARGIN,
        EXACT,
        option(
            "--nearest N",
            f"how many pairs that do not touch are printed; else {NEAREST}",
            type=whole_number(0),
            default=NEAREST,
        ),
        option(
            "--untested",
            "also print the pairs that are not tested, and why",
            action="store_true",
        ),
        JSON,
        out("D.npy", "least distances"),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Test and print or write; return an exit code: whether links touch."""
    _check(options)
    cell = open_cell(options)
    state = chosen_state(cell, options)
    check = collision_check(cell, state, options.margin, exact=options.exact)
    if options.q_file is not None:
        return _many(cell, check, state, options)
    touching = check.contacts(state.q)
    others = _others(cell, check, state, options)
    untested = list(_untested(check)) if options.untested else []
    if options.json:
        print(json.dumps(_object(check, touching, others, untested)))
    else:
        for line in _lines(check, touching, others):
            print(line)
        if untested:
            print()
        for line in table(("not tested", "", "why"), untested) if untested else ():
            print(line)
    return _code(check, bool(touching))


def _code(check: CollisionCheck, is_touching: bool) -> int:
    """Return the exit code; nothing is free where nothing was tested."""
    if not len(check.pairs):
        return UNTESTED
    return TOUCHING if is_touching else FREE


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together.

    Raises:
        ModelError: It says what.
    """
    if options.q_file is None and options.out is not None:
        raise ModelError("--out writes the distances of the vectors of --q-file.")
    if options.q_file is not None and (options.json or options.untested):
        raise ModelError("--json and --untested are of one state, not of --q-file.")


# one state


def _others(
    cell: Cell, check: CollisionCheck, state: State, options: argparse.Namespace
) -> list[Contact]:
    """Return the nearest pairs of those that do not touch."""
    count: int = options.nearest
    # Distances of all pairs are quick; contacts with points are computed only for those
    # that are printed, by a margin that just includes the last of them.
    distances = check.distances(state.q)
    free = np.sort(distances[distances > check.margin])[:count]
    if not free.size:
        return []
    margin = float(free[-1]) * (1.0 + 1e-9)
    wider = cell.collision(state, margin=margin, exact=options.exact)
    contacts = wider.contacts(state.q)
    return [each for each in contacts if each.distance > check.margin][:count]


def _lines(
    check: CollisionCheck, touching: Sequence[Contact], others: Sequence[Contact]
) -> Iterator[str]:
    counted = f"{plural(len(check.pairs), 'pair')} tested"
    within = f" or are nearer than {check.margin:g} m" if check.margin else ""
    yield f"{counted}: {len(touching)} touch{within}"
    for title, contacts in (("touching", touching), ("nearest", others)):
        if contacts:
            yield ""
            yield f"{title}:"
            named = any(name for each in contacts for name in each.shapes)
            names = ("shape", "shape") if named else ()
            yield from table(
                (*HEADER, *names), (_row(each, named) for each in contacts)
            )


def _row(contact: Contact, named: bool) -> tuple[str, ...]:
    """Return the texts of a contact; names of shapes where some have any."""
    points = contact.points.round(DECIMALS).tolist()
    texts = [" ".join(map(number, point)) for point in points]
    names = [name or "-" for name in contact.shapes] if named else ()
    return f"{contact.distance:.{DECIMALS}f}", *contact.links, *texts, *names


def _untested(check: CollisionCheck) -> Iterator[tuple[str, str, str]]:
    """Yield the pairs of links with shapes that are not tested, and why."""
    for a, b in combinations(check.pairs.links, 2):
        decision = check.pairs.why(a, b)
        if not decision.tested:
            yield a, b, str(decision).removeprefix("not tested: ")


def _object(
    check: CollisionCheck,
    touching: Sequence[Contact],
    others: Sequence[Contact],
    untested: Sequence[tuple[str, str, str]],
) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for what is not known."""
    about = {
        "cell": check.cell.name,
        "margin": check.margin,
        "pairs": len(check.pairs),
        "touching": list(map(_as_json, touching)),
        "nearest": list(map(_as_json, others)),
    }
    if untested:
        names = "links", "why"
        about["untested"] = [
            dict(zip(names, ((a, b), why), strict=True)) for a, b, why in untested
        ]
    return about


def _as_json(contact: Contact) -> dict[str, Any]:
    return {
        "links": contact.links,
        "shapes": contact.shapes,
        "distance": finite([contact.distance])[0],
        "points": [finite(point) for point in contact.points.tolist()],
        "normal": finite(contact.normal.tolist()),
    }


# a file of joint vectors


def _many(
    cell: Cell, check: CollisionCheck, state: State, options: argparse.Namespace
) -> int:
    summary = _Contacts()
    if options.out is not None:
        ask = check.clearance
        for values in written_answers(ask, cell, state, options, (), ["distance"]):
            summary.add(len(values), ~(values > check.margin), values)
    else:
        with open_joint_file(options.q_file, cell, state, options) as vectors:
            for rows in vectors.chunks:
                touching, first = check(rows), summary.count
                summary.add(len(rows), touching, np.full(len(rows), np.inf))
                for k, line in _touching_rows(check, rows, np.flatnonzero(touching)):
                    print(f"{first + k},{line}")
    print_summary([summary], options)
    return _code(check, bool(summary.touching))


def _touching_rows(
    check: CollisionCheck, rows: Array, which: npt.NDArray[np.int64]
) -> Iterator[tuple[int, str]]:
    """Yield vectors that touch: number, the least distance and both links."""
    pairs = [",".join(map(printable, pair)) for pair in check.pairs]
    for start in range(0, len(which), AT_ONCE):
        part = which[start : start + AT_ONCE]
        distances = check.distances(rows[part])
        nearest = distances.argmin(axis=1)  # a NaN, if there is one
        values = np.take_along_axis(distances, nearest[:, np.newaxis], axis=1)[:, 0]
        for k, pair, value in zip(
            part.tolist(), nearest.tolist(), values.tolist(), strict=True
        ):
            yield k, f"{value!r},{pairs[pair]}"


class _Contacts:
    """How many vectors touch, added up piece by piece."""

    def __init__(self) -> None:
        self.count = 0
        self.touching = 0
        self._first = 0
        self._least = np.inf, 0

    def add(self, count: int, touching: npt.NDArray[np.bool_], values: Array) -> None:
        """Add vectors: which touch, and their least distances, infinite if unknown."""
        if touching.any() and not self.touching:
            self._first = self.count + int(touching.argmax())
        known = np.where(np.isnan(values), np.inf, values)
        if known.size and known.min() < self._least[0]:
            self._least = float(known.min()), self.count + int(known.argmin())
        self.touching += int(touching.sum())
        self.count += count

    def __str__(self) -> str:
        text = f"{self.touching} of {plural(self.count, 'vector')} touch"
        if self.touching:
            text += f"; the first is {self._first}"
        if np.isfinite(self._least[0]):
            text += (
                f"; the least distance is {self._least[0]:.6g} m at {self._least[1]}"
            )
        return text
