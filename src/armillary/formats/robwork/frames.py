"""RobWork's frames: what a file says of each, their names, and their parents.

The parent of a frame follows from RobWork's rules:

- A frame of the workcell: its refframe, which may be declared later and may be a frame
  of a device; without one the world. That of the first frame is always the world.
- The base of a device: the frame of the workcell that is declared last before it, else
  the world; that of a mobile device is always the world.
- In a serial device: the frame before it.
- In the other devices: its refframe in the same device, which must be declared before
  it; without one the frame before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.names import cycles, shown_cycle
from armillary.formats.robwork.annotations import DEVICE, Annotations
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.joint import Joint
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.shape import Shape
from armillary.model.workcell import WORLD, Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = [
    "SEPARATOR",
    "WORLD_FRAME",
    "Depend",
    "FrameIndex",
    "Node",
    "Scope",
    "Step",
    "frame_names",
    "on_paths",
]

WORLD_FRAME: Final = "WORLD"
"""The name of the world in RobWork."""

SEPARATOR: Final = "."
MOST_COMPARED: Final = 1000

Scope = tuple[str, ...]
"""The device and the chains around a frame, whose names come before its own."""


@dataclass(frozen=True, slots=True)
class Step:
    """One coordinate of a joint: what it adds to the frame's name, and its motion.

    The last step of a joint adds nothing.
    """

    suffix: str
    joint: Joint


@dataclass(frozen=True, slots=True)
class Depend:
    """The joint that a joint depends on, as written, with gain and offset."""

    on: str
    gain: float
    offset: float
    place: Place


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """A frame of RobWork.

    Attributes:
        element: Its declaration.
        scope: The device and chains around it.
        name: As written.
        refframe: As written; empty if not given.
        type: `Fixed`, `Movable`, `EndEffector` or the type of a joint.
        daf: Whether it may be attached to other frames.
        pose: Constant pose in its parent, X_PF for a frame that is not a joint.
        steps: The coordinates of a joint, innermost first; the first has the pose.
        passive: Whether the joint is not in RobWork's q.
        depend: The joint that it depends on.
        coupling: The same, once that joint is found.
        parent: Full name of its parent, once that is found.
        limits: Of a joint with one coordinate.
        visuals: Shapes to draw.
        collisions: Shapes to test for collision.
        annotations: Its properties.
        full_name: Unique in the workcell: `Device.Chain.Frame`.
        local_name: Unique in the device: `Chain.Frame`.
    """

    element: Element
    scope: Scope
    name: str
    refframe: str = ""
    type: str = "Fixed"
    daf: bool = False
    pose: Pose = IDENTITY
    steps: tuple[Step, ...] = ()
    passive: bool = False
    depend: Depend | None = None
    coupling: Coupling | None = None
    parent: str = ""
    limits: Limits = UNLIMITED
    visuals: list[Shape] = field(default_factory=list[Shape])
    collisions: list[Shape] = field(default_factory=list[Shape])
    annotations: Annotations = field(default_factory=Annotations)
    full_name: str = field(init=False)
    local_name: str = field(init=False)

    def __post_init__(self) -> None:
        """Join the names."""
        self.full_name = SEPARATOR.join((*self.scope, self.name))
        self.local_name = SEPARATOR.join((*self.scope[1:], self.name))

    @property
    def place(self) -> Place:
        """Return the location of its declaration."""
        return self.element.place

    @property
    def is_joint(self) -> bool:
        """Return whether it is a joint."""
        return bool(self.steps)

    @property
    def joint_name(self) -> str:
        """Return the name of the coordinate of a joint that has one."""
        return self.annotations.coordinate or self.local_name

    @property
    def is_movable(self) -> bool:
        """Return whether a state may move it."""
        return self.daf or self.type == "Movable"

    @property
    def has_shapes(self) -> bool:
        """Return whether anything is drawn or tested for collision."""
        return bool(self.visuals or self.collisions)

    @property
    def is_plain(self) -> bool:
        """Return whether it has neither shapes nor properties."""
        return not (self.has_shapes or self.annotations.properties)


class FrameIndex:
    """All frames of a workcell by their full names."""

    def __init__(self, context: ReaderContext) -> None:
        self._context = context
        self._nodes: dict[str, Node] = {}

    def add(self, nodes: Iterable[Node]) -> None:
        """Add frames; report those whose name is taken."""
        for node in nodes:
            first = self._nodes.setdefault(node.full_name, node)
            message, hint = "", ""
            if node.full_name == WORLD_FRAME:
                message = f"only the world can have the name {WORLD_FRAME!r}"
            elif first is not node:
                name, hint = quote(node.full_name), "Rename one."
                message = f"there is a frame {name} already, at {first.place}"
            if message:
                self._context.error(node.place, "repeated-name", message, hint=hint)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __getitem__(self, full_name: str) -> Node:
        return self._nodes[full_name]

    def __contains__(self, full_name: object) -> bool:
        return full_name in self._nodes or full_name == WORLD_FRAME

    def find(self, name: str, scope: Scope) -> str | None:
        """Return the full name that a name means in a scope, None if nothing has it.

        RobWork searches the scope itself. Here the scopes around it are searched too,
        from the inside out, and a full name is understood.
        """
        for count in range(len(scope), -1, -1):
            full = SEPARATOR.join((*scope[:count], name))
            if full in self._nodes:
                return full
        return WORLD_FRAME if name == WORLD_FRAME else None

    def hint(self, name: str, scope: Scope) -> str:
        """Return the sentence with the nearest name that is known in a scope."""
        prefix = SEPARATOR.join((*scope, ""))
        known = (full.removeprefix(prefix) for full in self._nodes)
        return self._context.hint(name, list(islice(known, MOST_COMPARED)))

    def set_parent(
        self, node: Node, usual: str, declared: Container[str] | None
    ) -> None:
        """Set the parent of a frame.

        usual: The parent of a frame without a refframe.
        declared: The frames that the refframe may mean, None if RobWork ignores it.
        """
        node.parent = usual
        named = node.refframe
        if named in {"", usual}:
            return
        found, label = self.find(named, node.scope), node.element.label
        if declared is None:
            if found != usual:
                self._context.warning(
                    node.place,
                    "refframe-ignored",
                    f"the refframe {quote(named)} of {label} is ignored, as in "
                    f"RobWork: its parent is {quote(usual)}",
                )
        elif found is not None and found in declared:
            node.parent = found
        else:
            where = "before it in the same device" if found else "anywhere"
            self._context.error(
                node.place,
                "unknown-frame",
                f"{label} refers to the frame {quote(named)}, which is not declared "
                f"{where}",
                hint="" if found else self.hint(named, node.scope),
            )

    def check_cycles(self) -> None:
        """Report frames that are their own ancestors, each cycle once.

        One of its frames gets the world as its parent, so that the rest can be read.
        """
        parents = {node.full_name: node.parent for node in self}
        parents.pop(WORLD_FRAME, None)
        for cycle in cycles(parents):
            node = self[cycle[0]]
            self._context.error(
                node.place,
                "cycle",
                f"frame {quote(cycle[0])} is its own ancestor: {shown_cycle(cycle)}",
                hint="The parent of a device is the workcell's frame before it.",
            )
            node.parent = WORLD_FRAME


def on_paths(ends: Iterable[str], parents: Mapping[str, str]) -> list[str]:
    """Return the frames on the paths from the base to each end, each once.

    parents: The parent of each frame of a device.
    """
    found: dict[str, None] = {}
    for end in ends:
        path: list[str] = []
        name = end
        while name in parents and name not in found:
            path.append(name)
            name = parents[name]
        found.update(dict.fromkeys(reversed(path)))
    return list(found)


def frame_names(cell: Workcell) -> dict[str, str]:
    """Return, for each frame's full name in RobWork, its name in a loaded cell.

    `PA10.Joint1` is `PA10/Joint1` and `SchunkHand.f1.Joint2` is `SchunkHand/f1.Joint2`;
    a frame of the workcell is in the environment or in a part, and `WORLD` is `world`.
    """
    names = {WORLD_FRAME: WORLD}
    for manipulator in cell.manipulators:
        is_device = any(each.name == DEVICE for each in manipulator.properties)
        scope = (manipulator.name,) if is_device else ()
        for frame in manipulator.places:
            full = SEPARATOR.join((*scope, frame))
            names.setdefault(full, f"{manipulator.name}/{frame}")
    return names
