"""`armillary plan`: a motion from A to B that touches nothing, or why there is none."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    AXES,
    FRAME,
    JSON,
    MARGIN,
    RELATIVE_TO,
    STATE,
    chosen_axes,
    chosen_frame,
    chosen_state,
    collision_check,
    names_of,
)
from armillary.cli.table import comma_separated, finite
from armillary.cli.targets import FORMS, pose_of_text
from armillary.cli.vectors import chosen_factors, chosen_vector
from armillary.cli.verb import OneOf, Option, option, verb, whole_number
from armillary.collision.contact import Contact
from armillary.errors import printable
from armillary.kinematics.postures import in_posture
from armillary.kinematics.state import State
from armillary.model.display import plural
from armillary.planning.plan import BLEND, Plan, PlanReason
from armillary.programs.post_processors.registry import LANGUAGES
from armillary.sweeps.row_files import as_number
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_files import ENDINGS

Array = npt.NDArray[np.float64]

FOUND, NO_WAY = 0, 1
SHOWN: Final = 5
"""Pairs of links that are printed."""
DESCRIPTION = f"""\
Print way points of a motion that touches nothing, from a state to joint positions, a
posture or a pose of a frame; or why there is none. Joints move straight between way
points, which is proven to be free where links have bounds of their speed. With --out
the motion is timed within limits of rates and accelerations, and written. {FORMS};
metres and radians. The exit code is 1 if no way is found.
"""
ADVICE: Final = {
    PlanReason.START_TOUCHES: "Start elsewhere with --from, or ask for a smaller "
    "--margin; 'armillary collide' prints all pairs.",
    PlanReason.GOAL_TOUCHES: "Go elsewhere, or ask for a smaller --margin.",
    PlanReason.OUT_OF_REACH: "Bring the pose nearer, or ask for less with --position "
    "or --rotation.",
    PlanReason.LIMITS: "'armillary info' shows the limits.",
    PlanReason.TIMED_OUT: "This proves nothing. Give it more time with --timeout, or "
    "another --seed.",
    PlanReason.NOT_FOUND: "This proves nothing. Try another --seed.",
    PlanReason.SEPARATED: "Only one joint moves, and links touch on its way. Move what "
    "is there, or ask for a smaller --margin.",
}


def _motion_path(text: str) -> str:
    endings = (*ENDINGS, *LANGUAGES)
    if not text.endswith(endings):
        raise argparse.ArgumentTypeError(
            f"{text!r} does not end in {', '.join(map(repr, endings))}"
        )
    return text


def _limit(name: str, what: str, unit: str) -> Option:
    return option(
        f"--{name} X",
        f"the greatest {what} of all joints [{unit}]; else that of the model",
        type=float,
    )


@verb(
    "plan",
    (
        *FILE,
        option(
            "--from Q1,Q2,...|POSTURE",
            "joint positions, or a posture, in place of those of the state",
            has_numbers=True,
            dest="start",
        ),
        OneOf(
            (
                option(
                    "--to Q1,Q2,...|POSTURE",
                    "joint positions, or a posture, such as 'home'",
                    has_numbers=True,
                ),
                option("--pose X,Y,Z,...", "a pose of --frame", has_numbers=True),
            ),
            required=True,
        ),
        FRAME,
        RELATIVE_TO,
        *AXES,
        MARGIN,
        option(
            "--seed S", "another seed gives other ways; else 0", type=whole_number(0)
        ),
        option(
            "--timeout S", "time for the search [s]; else 10", type=float, default=10.0
        ),
        _limit("velocity", "rate", "m/s or rad/s"),
        _limit("acceleration", "acceleration", "m/s^2 or rad/s^2"),
        option(
            "--jerk X",
            "the greatest jerk of all joints [m/s^3 or rad/s^3]; else any",
            type=float,
        ),
        option(
            "--blend X",
            "by how much joints may deviate at corners to round them [m or rad]; 0 to "
            f"rest at each, else {BLEND}",
            type=float,
            default=BLEND,
        ),
        option(
            "--rate HZ",
            "samples a second of a motion that is written as CSV or NPY; else 100",
            type=float,
            default=100.0,
        ),
        *STATE,
        JSON,
        option(
            "--out FILE",
            "write the motion to this file, JSON, NPZ, CSV or NPY by its ending, or a "
            "program for a controller: .script (URScript), .src (KRL), .mod (RAPID)",
            type=_motion_path,
        ),
        option(
            "--external A,B,...",
            "joints that the controller moves beside those of the robot, in a program",
            type=names_of,
        ),
        option(
            "--tolerance X",
            "how far --frame may be from the motion in a program [m]; else 1e-6",
            type=float,
        ),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Plan and print or write; return an exit code: whether a way was found."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    if options.start is not None:
        state = _state(cell, state, options.start, "--from", options)
    # What is asked is read first: a check may read meshes for seconds.
    asked: dict[str, Any] = {"seed": options.seed or 0, "timeout": options.timeout}
    if options.pose is not None:
        goal, of_pose = _pose(cell, options)
        asked |= of_pose
    else:
        goal = _state(cell, state, options.to, "--to", options).q
    planner = cell.planner(collision_check(cell, state, options.margin))
    plan = planner(state, goal, **asked)
    motion = _motion(plan, state, options)
    if motion is not None and options.out is not None:
        _write(cell, motion, options)
    if options.json:
        print(json.dumps(_object(cell, plan, motion)))
    else:
        for line in _lines(cell, plan, motion, options):
            print(line)
    return FOUND if plan.success else NO_WAY


def _write(cell: Cell, motion: Motion, options: argparse.Namespace) -> None:
    """Write the motion as data, or as a program of the joints that move."""
    if options.out.endswith(LANGUAGES):
        given = {} if options.tolerance is None else {"tolerance": options.tolerance}
        external = options.external or ()
        cell.hand_over(
            motion, options.out, tool=options.frame, external=external, **given
        )
    else:
        is_sampled = options.out.endswith((".csv", ".npy"))
        motion.write(options.out, rate=options.rate if is_sampled else None)


# what is asked


def _state(
    cell: Cell, state: State, text: str, name: str, options: argparse.Namespace
) -> State:
    """Return the state with the joint positions, or in the posture, of an option."""
    first = text.replace(",", " ").split(maxsplit=1)
    if first and as_number(first[0]) is None:
        return in_posture(state, text)
    return state.replace(q=chosen_vector(cell, text, options, name))


def _pose(cell: Cell, options: argparse.Namespace) -> tuple[Array, dict[str, Any]]:
    """Return the pose that is the goal, and what is said of it."""
    position, rotation = map(chosen_axes, (options.position, options.rotation))
    X = pose_of_text(options.pose, degrees=options.degrees, position_only=not rotation)
    return X, {
        "frame": chosen_frame(cell, options),
        "relative_to": options.relative_to,
        "position": position,
        "rotation": rotation,
        "axes": options.axes,
    }


def _motion(plan: Plan, state: State, options: argparse.Namespace) -> Motion | None:
    """Return the motion, where it is asked for and there is a way."""
    limits = {
        name: value
        for name in ("velocity", "acceleration", "jerk")
        if (value := getattr(options, name)) is not None
    }
    if not plan.success or not (limits or options.out):
        return None
    return plan.timed(blend=options.blend, **limits)


# what is said


def _lines(
    cell: Cell, plan: Plan, motion: Motion | None, options: argparse.Namespace
) -> Iterator[str]:
    if not plan.success:
        yield plan.reason.sentence
        yield from _why(plan)
        if plan.reason in ADVICE:
            yield ADVICE[plan.reason]
        return
    how = "proven" if plan.proven else f"sampled every {plan.resolution:.3g} of length"
    yield f"{plural(len(plan.q), 'way point')}, length {plan.length:.6g}, {how}"
    if motion is not None:
        yield f"it takes {motion.duration:.6g} s"
    yield ""
    factors = chosen_factors(cell.workcell, cell.joint_names, options)
    for q in plan.q:
        yield comma_separated((q / factors + 0.0).tolist())


def _why(plan: Plan) -> Iterator[str]:
    """Yield what touches, or which joints are out of limits, a line each."""
    for contact in plan.pairs[:SHOWN]:
        yield f"  {contact}"
    if len(plan.pairs) > SHOWN:
        yield f"  and {len(plan.pairs) - SHOWN} more"
    for name in plan.joints:
        yield f"  {printable(name)}"


def _object(cell: Cell, plan: Plan, motion: Motion | None) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for what is not known."""
    return {
        "cell": cell.name,
        "reason": plan.reason.name,
        "success": plan.success,
        "proven": plan.proven,
        "joints": list(cell.joint_names),
        "q": plan.q.tolist(),
        "length": finite([plan.length])[0],
        "duration": None if motion is None else motion.duration,
        "edges": plan.edges,
        "checks": plan.checks,
        "seconds": plan.seconds,
        "touching": [_pair(contact) for contact in plan.pairs],
        "outside": list(plan.joints),
    }


def _pair(contact: Contact) -> dict[str, Any]:
    return {"links": contact.links, "distance": finite([contact.distance])[0]}
