"""Random cells and states, for laws that hold for all of them.

Their structure is drawn, and so shrinks; the numbers in it come from drawn seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from armillary import (
    Cell,
    Coupling,
    Frame,
    JointDynamics,
    Limits,
    Link,
    Manipulator,
    Mount,
    Pose,
    State,
)
from armillary.errors import StateError
from armillary.model.group import Group
from armillary.model.joints import JOINT_TYPES
from armillary.model.mount import WORLD
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from armillary.spatial.inertia import SpatialInertia
from armillary.testing.samples import Random, random_joint, random_pose

KINDS = tuple(sorted(set(JOINT_TYPES) - {"FourBarSlider"}))
"""Tags of all joints that have a pose at every q."""

TURNING_OR_SLIDING = (
    *("Fixed", "Revolute", "Prismatic"),
    *("PaulRevolute", "PaulPrismatic", "CraigRevolute", "CraigPrismatic"),
)
"""Tags of the joints that turn or slide about a line, as those of a URDF do."""

TREES, PARTS = ("cart", "arm", "hand"), ("part", "tray", "lid")


def laws(examples: int) -> settings:
    """How often a law is tried."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, suppress_health_check=slow)


def seeded(make: Callable[[Random], Any]) -> st.SearchStrategy[Any]:
    """What a function makes of random numbers."""
    return st.integers(0, 2**32).map(lambda seed: make(np.random.default_rng(seed)))


poses = st.just(Pose.identity()) | seeded(random_pose)
joints = {  # of each kind a few, for each is traced once
    kind: st.sampled_from(
        [random_joint(np.random.default_rng(seed), kind) for seed in range(4)]
    )
    for kind in KINDS
}
limits = st.just(Limits()) | seeded(
    lambda random: Limits(
        lower=-random.uniform(0.5, 3.0),
        upper=random.uniform(0.5, 3.0),
        velocity=random.uniform(0.1, 2.0),
        effort=random.uniform(1.0, 100.0),
    )
)
dynamics = st.just(JointDynamics()) | seeded(
    lambda random: JointDynamics(
        motor_inertia=random.uniform(0.0, 1e-3),
        gear_ratio=random.choice([-1.0, 1.0]) * random.uniform(1.0, 200.0),
        damping=random.uniform(0.0, 2.0),
        friction=random.uniform(0.0, 5.0),
        stiffness=random.uniform(0.0, 10.0),
        rest=random.uniform(-1.0, 1.0),
    )
)
ratios = st.none() | st.tuples(
    st.sampled_from([-0.5, 2.0, 0.0]), st.sampled_from([0.0, 0.3])
)
SHAPES: tuple[Shape, ...] = (
    Box(size=(0.1, 0.2, 0.3)),
    Sphere(radius=0.1, colour=(1.0, 0.5, 0.0, 1.0)),
    Cylinder(radius=0.1, length=0.3, name="tube"),
    Capsule(radius=0.1, length=0.3),
    Mesh(file="hull.stl"),
)


def _body(random: Random, tip: str) -> dict[str, Any]:
    """What a link carries: a primary frame, shapes, a mass, a named frame."""
    visual, collision = (
        msgspec.structs.replace(SHAPES[k], pose=random_pose(random))
        for k in random.integers(len(SHAPES), size=2)
    )
    mass, centre = random.uniform(0.1, 9.0), random.normal(size=3).tolist()
    return {
        "primary": random_pose(random),
        "inertia": SpatialInertia.from_centre(mass, centre, np.eye(3).tolist()),
        "frames": (Frame(name=tip, pose=random_pose(random), end_effector=True),),
        "visuals": (visual,),
        "collisions": (collision,)[: random.integers(2)],
    }


def bodies(tip: str) -> st.SearchStrategy[dict[str, Any]]:
    """What links carry, or nothing."""
    return st.just({}) | seeded(lambda random: _body(random, tip))


@st.composite
def links(draw: st.DrawFn, kinds: Sequence[str], most: int) -> list[Link]:
    """Links that make a tree: a base that does not move, and joints of these kinds."""
    found: list[Link] = []
    for k in range(1 + draw(st.integers(0, most))):
        kind = draw(st.sampled_from(kinds)) if k else "Fixed"
        moving = [link.coordinate for link in found if link.moves]
        ratio = draw(ratios) if moving and kind != "Fixed" else None
        coupling = None
        if ratio is not None:
            of = draw(st.sampled_from(moving))
            coupling = Coupling(of=of, multiplier=ratio[0], offset=ratio[1])
        found.append(
            Link(
                name=f"link{k}",
                parent=draw(st.sampled_from(found)).name if found else None,
                joint=draw(joints[kind]),
                joint_name=f"joint{k}" if k % 2 else "",
                limits=Limits() if coupling or kind == "Fixed" else draw(limits),
                dynamics=JointDynamics() if kind == "Fixed" else draw(dynamics),
                coupling=coupling,
                **draw(bodies(f"tip{k}")),
            )
        )
    return found


@st.composite
def manipulators(
    draw: st.DrawFn, name: str, kinds: Sequence[str] = KINDS, most: int = 4
) -> Manipulator:
    """A tree of links, some with postures, groups and properties."""
    tree = draw(st.permutations(draw(links(kinds, most))))
    bare = Manipulator(name=name, links=tree)
    if not bare.joint_names or draw(st.booleans()):
        return bare
    joints = bare.joint_names[: draw(st.integers(0, len(bare.joint_names)))]
    q = tuple(0.1 * k - 0.2 for k in range(len(joints)))
    return msgspec.structs.replace(
        bare,
        postures=(Posture(name="rest", joints=joints, q=q),),
        home=draw(st.sampled_from(["", "rest"])),
        groups=(Group(name="some", joints=joints),),
        properties=(Property(name="note", of="link0", numbers=q),),
    )


@st.composite
def cells(draw: st.DrawFn, kinds: Sequence[str] = KINDS, most: int = 4) -> Cell:
    """A cell of trees and parts that stand on each other, bolted or not, with rules."""
    trees = TREES[: draw(st.integers(1, 3))]
    parts = PARTS[: draw(st.integers(1, 3))]
    members = [draw(manipulators(name, kinds, most)) for name in trees]
    members += [draw(manipulators(name, ("Fixed",), 1)) for name in parts]
    mounts: list[Mount] = []
    places = [WORLD]
    for member in members:
        if draw(st.booleans()):
            mounts.append(
                Mount(
                    manipulator=member.name,
                    on=draw(st.sampled_from(places)),
                    pose=draw(poses),
                    bolted=draw(st.booleans()),
                )
            )
        places += [f"{member.name}/{frame}" for frame in member.frame_refs]
    cell = Cell(
        name=draw(st.sampled_from(["cell", "lab"])),
        manipulators=draw(st.permutations(members)),
        mounts=draw(st.permutations(mounts)),
        properties=(Property(name="of the cell", text="x"),),
    )
    return cell.replace(rules=draw(rules(cell))) if draw(st.booleans()) else cell


@st.composite
def rules(draw: st.DrawFn, cell: Cell) -> Rules:
    """Rules that name links and manipulators of a cell."""
    names = [f"{m.name}/{link.name}" for m in cell.manipulators for link in m.links]
    sides = st.sampled_from([*names, *(f"{m.name}/*" for m in cell.manipulators), "*"])
    found = Rules(within=draw(st.booleans()), between=draw(st.booleans()))
    for verb in draw(st.lists(st.sampled_from(["in", "out", "touch"]), max_size=4)):
        a, b = draw(sides), draw(sides)
        match verb:
            case "in":
                found = found.include(a, b)
            case "out":
                where = draw(st.sampled_from(["any", "apart", "adjacent"]))
                found = found.exclude(a, b, where=where)
            case _:
                found = found.let_touch(a, held_by=b)
    return found


@st.composite
def states(draw: st.DrawFn, cell: Cell) -> State:
    """A state of a cell after some gripping, attaching, placing and releasing."""
    state = cell.home.replace(q=draw(vectors(cell)))
    if draw(st.booleans()):
        state = state.replace(qd=draw(vectors(cell)))
    names = st.sampled_from([m.name for m in cell.manipulators])
    frames = st.sampled_from(cell.frame_names)
    verbs = st.sampled_from(["grip", "attach", "place", "release", "move"])
    for verb in draw(st.lists(verbs, max_size=5)):
        part, frame = draw(names), draw(frames)
        state = _after(state, verb, part, frame, draw(poses), draw(vectors(cell)))
    return state


def _after(
    state: State, verb: str, part: str, frame: str, pose: Pose, q: list[float]
) -> State:
    """The state after something was done, or as it is where that is refused."""
    try:
        match verb:
            case "grip":
                return state.grip(part, by=frame, replace=True)
            case "attach":
                return state.attach(part, frame, pose=pose)
            case "place":
                return state.place(part, pose, relative_to=frame)
            case "release":
                return state.release(part)
            case _:
                return state.replace(q=q)
    except StateError:
        return state


def vectors(cell: Cell) -> st.SearchStrategy[list[float]]:
    """Joint vectors of a cell, with no regard to its limits."""
    count = len(cell.joint_names)
    return seeded(lambda random: random.uniform(-3.0, 3.0, count).tolist())


@st.composite
def cells_and_states(
    draw: st.DrawFn, kinds: Sequence[str] = KINDS, most: int = 4
) -> tuple[Cell, State]:
    """A cell, and a state of it."""
    cell = draw(cells(kinds, most))
    return cell, draw(states(cell))


def movable(state: State) -> list[str]:
    """The manipulators that a state may move: those that are not bolted down."""
    bolted = {mount.manipulator for mount in state.cell.mounts if mount.bolted}
    return [m.name for m in state.cell.manipulators if m.name not in bolted]


def carriers(state: State, name: str) -> list[str]:
    """A manipulator and all that carry it, the nearest first."""
    found = [name]
    while (on := state.parent(found[-1])) != WORLD:
        found.append(on.partition("/")[0])
    return found
