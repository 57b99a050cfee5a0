"""`armillary info`: what a cell holds, as a tree and a table of joints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from armillary.cell.cell import Cell
from armillary.cell.tree_text import tree_rows
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import JSON
from armillary.cli.table import finite, number, table
from armillary.cli.vectors import DEGREES_PER_RADIAN
from armillary.cli.verb import option, verb
from armillary.errors import printable
from armillary.model.coupled_limit import CoupledLimit
from armillary.model.display import sized
from armillary.model.joint_dynamics import NO_DYNAMICS
from armillary.model.link import Link
from armillary.model.unit import Unit

TREE = ("frame", "joint type", "joint")
JOINT_COLUMNS = (">q", "joint", "unit", ">lower", ">upper", ">rate", ">effort")
COUPLED = ("coupled limit", "of", "unit", ">lower", ">upper")
DYNAMICS = (
    *("dynamics of", "unit", ">motor inertia", ">gear", ">armature"),
    *(">damping", ">friction", ">stiffness", ">rest"),
)
MASSES = ("manipulator", ">mass [kg]", "links of unknown inertia")
BODIES = (
    *("link", ">mass [kg]", ">x [m]", ">y [m]", ">z [m]"),
    *(">I1 [kg m^2]", ">I2 [kg m^2]", ">I3 [kg m^2]"),
)


@verb(
    "info",
    (
        *FILE,
        option("--degrees", "print angles in degrees", action="store_true"),
        option(
            "--masses",
            "print the mass of each link, its centre in the primary frame, and "
            "the principal moments of inertia about it [kg m^2]; '-' where they are "
            "unknown",
            action="store_true",
        ),
        JSON,
    ),
    description="Print the tree of frames, the joints in the order of q with "
    "their units and limits, the dynamics of joints that have some, and masses. "
    "'-' stands for no limit. Rates are per second, efforts in N or N m, dynamics "
    "in SI units with radians.",
)
def run(options: argparse.Namespace) -> int:
    """Print the tree and the joints."""
    cell = open_cell(options)
    if options.json:
        print(json.dumps(_object(cell)))
        return 0
    for line in described(cell, in_degrees=options.degrees):
        print(line)
    if options.masses:
        print()
        for line in table(BODIES, _body_rows(cell)):
            print(line)
    return 0


def described(cell: Cell, *, in_degrees: bool = False) -> Iterator[str]:
    """Yield the lines that describe a cell."""
    yield f"{printable(cell.name)}: {_counts(cell)}"
    yield ""
    yield from table(TREE, tree_rows(cell.workcell))
    if cell.joint_names or cell.passive_names:
        yield ""
        yield from table(JOINT_COLUMNS, _joint_rows(cell, in_degrees=in_degrees))
    if coupled := list(_coupled_rows(cell, in_degrees=in_degrees)):
        yield ""
        yield from table(COUPLED, coupled)
    if dynamics := list(_dynamics_rows(cell)):
        yield ""
        yield from table(DYNAMICS, dynamics)
    if masses := list(_mass_rows(cell)):
        yield ""
        yield from table(MASSES, masses)
    if cell.passive_names:
        yield ""
        yield printable(str(cell.mobility()))


def _counts(cell: Cell) -> str:
    links = sum(len(m.links) for m in cell.manipulators)
    return sized(
        manipulator=len(cell.manipulators), link=links, joint=len(cell.joint_names)
    )


def _joint_rows(cell: Cell, *, in_degrees: bool) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the joints, passive ones last, without a place in q.

    Joints that follow a joint narrow its limits.
    """
    joints = cell.workcell.joints
    lower, upper, _ = joints.ranges
    for k, (name, place) in enumerate(zip(joints.all_names, joints.links, strict=True)):
        link = cell.workcell.links[place]
        turned = in_degrees and link.joint.unit is Unit.RADIAN
        factor = DEGREES_PER_RADIAN if turned else 1.0
        bounds = float(lower[k]), float(upper[k]), link.limits.velocity
        yield (
            str(k) if k < len(cell.joint_names) else "passive",
            name,
            "deg" if turned else link.joint.unit.value or "-",
            *(number(bound * factor) for bound in bounds),
            number(link.limits.effort),
        )


def _coupled_limits(cell: Cell) -> Iterator[tuple[str, CoupledLimit]]:
    """Yield the limits of several joints, and what is before the names of these."""
    for manipulator in cell.manipulators:
        prefix = f"{manipulator.name}/" if len(cell.manipulators) > 1 else ""
        for limit in manipulator.coupled_limits:
            yield prefix, limit
    for limit in cell.coupled_limits:
        yield "", limit


def _coupled_rows(cell: Cell, *, in_degrees: bool) -> Iterator[tuple[str, ...]]:
    """Yield the rows of limits of several joints.

    Degrees are printed where all joints of a limit are angles.
    """
    links = cell.workcell.links
    for prefix, limit in _coupled_limits(cell):
        drives = [cell.workcell.drive(f"{prefix}{name}") for name in limit.joints]
        places = [cell.workcell.joints.links[drive.of] for drive in drives]
        units = {links[k].joint.unit for k in places}
        turned = in_degrees and units == {Unit.RADIAN}
        factor = DEGREES_PER_RADIAN if turned else 1.0
        unit = " + ".join(sorted(each.value or "-" for each in units))
        yield (
            f"{prefix}{limit.name}" if limit.name else "-",
            limit.sum,
            "deg" if turned else unit,
            number(limit.lower * factor),
            number(limit.upper * factor),
        )


def _dynamics_rows(cell: Cell) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the joints with dynamics, also of those that follow others."""
    for name, link in _named_links(cell, lambda link: link.coordinate):
        dynamics = link.dynamics
        if dynamics != NO_DYNAMICS:
            values = (
                *(dynamics.motor_inertia, dynamics.gear_ratio, dynamics.armature),
                *(dynamics.damping, dynamics.friction),
                *(dynamics.stiffness, dynamics.rest),
            )
            yield name, link.joint.unit.value or "-", *map(number, values)


def _mass_rows(cell: Cell) -> Iterator[tuple[str, ...]]:
    """Yield the rows of manipulators and their sum; none if no inertia is known."""
    if all(link.inertia is None for link in cell.workcell.links):
        return
    for manipulator in cell.manipulators:
        yield _mass_row(manipulator.name, manipulator.links)
    if len(cell.manipulators) > 1:
        yield _mass_row("(all)", cell.workcell.links)


def _mass_row(name: str, links: Sequence[Link]) -> tuple[str, ...]:
    known = [link.inertia for link in links if link.inertia is not None]
    unknown = len(links) - len(known)
    mass = number(sum(body.mass for body in known)) if known else "-"
    return name, mass, f"{unknown} of {len(links)}" if unknown else "none"


def _body_rows(cell: Cell) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the bodies of links."""
    for name, link in _named_links(cell, lambda link: link.name):
        body = link.inertia
        centre, moments = ["-"] * 3, ["-"] * 3
        if body is not None and body.mass > 0.0:
            centre = list(map(number, body.centre()))
            principal = np.linalg.eigvalsh(np.array(body.about_centre(), np.float64))
            moments = list(map(number, principal.tolist()))
        yield name, "-" if body is None else number(body.mass), *centre, *moments


def _named_links(
    cell: Cell, name_of: Callable[[Link], str]
) -> Iterator[tuple[str, Link]]:
    """Yield links with their names, in full where there are several manipulators."""
    for manipulator in cell.manipulators:
        prefix = f"{manipulator.name}/" if len(cell.manipulators) > 1 else ""
        for k in manipulator.order:
            link = manipulator.links[k]
            yield f"{prefix}{name_of(link)}", link


def _object(cell: Cell) -> dict[str, Any]:
    """Return what is printed as JSON, in SI units; null where there is no limit."""
    joints = cell.workcell.joints
    lower, upper, _ = joints.ranges
    listed: list[dict[str, Any]] = []
    for k, (name, place) in enumerate(zip(joints.all_names, joints.links, strict=True)):
        link = cell.workcell.links[place]
        bounds = lower[k], upper[k], link.limits.velocity, link.limits.effort
        names = "lower", "upper", "velocity", "effort"
        listed.append(
            {
                "joint": name,
                "q": k if k < len(cell.joint_names) else None,
                "type": link.joint.tag,
                "unit": link.joint.unit.value,
                **dict(zip(names, finite(map(float, bounds)), strict=True)),
            }
        )
    bodies = [
        {"link": name, "mass": None if link.inertia is None else link.inertia.mass}
        for name, link in _named_links(cell, lambda link: link.name)
    ]
    return {
        "cell": cell.name,
        "manipulators": [manipulator.name for manipulator in cell.manipulators],
        "joints": listed,
        "coupled_limits": [
            {
                "name": limit.name,
                "joints": {
                    f"{prefix}{name}": c
                    for name, c in zip(limit.joints, limit.coefficients, strict=True)
                },
                **dict(
                    zip(
                        ("lower", "upper"),
                        finite((limit.lower, limit.upper)),
                        strict=True,
                    )
                ),
            }
            for prefix, limit in _coupled_limits(cell)
        ],
        "links": bodies,
    }
