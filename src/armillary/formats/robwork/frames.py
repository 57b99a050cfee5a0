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

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import check_unique, shown_cycle
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.joint import Joint
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.mount import WORLD
from armillary.model.parents import cycles
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = [
    "COORDINATE",
    "DAF",
    "DEVICE",
    "JUNCTION",
    "PREFIX",
    "SEPARATOR",
    "TYPE",
    "WORLD_FRAME",
    "FileFrame",
    "FileSection",
    "FrameIndex",
    "LoosePart",
    "Scope",
    "frame_names",
    "q_order",
]

WORLD_FRAME: Final = "WORLD"
"""The name of the world in RobWork."""

SEPARATOR: Final = "."
MOST_COMPARED: Final = 1000

# Properties that keep what only RobWork has.

PREFIX: Final = "robwork."
DEVICE: Final = f"{PREFIX}device"
"""Of a manipulator: its element, such as `SerialDevice`."""

TYPE: Final = f"{PREFIX}type"
"""Of a link: the type of its frame if the model has none, such as `Movable`."""

DAF: Final = f"{PREFIX}daf"
"""Of a link or frame within a device: RobWork may attach it to other frames."""

JUNCTION: Final = f"{PREFIX}junction"
"""Of a manipulator: the chains that meet at a point, separated by `|`; repeated."""

COORDINATE: Final = "armillary.coordinate"
"""Of a joint that armillary wrote under another name: the name of the joint."""

Scope = tuple[str, ...]
"""The device and the chains around a frame, whose names come before its own."""


@dataclass(slots=True, kw_only=True, eq=False)
class FileFrame:
    """A frame of RobWork.

    Attributes:
        element: Its declaration.
        scope: The device and chains around it.
        name: As written.
        refframe: As written; empty if not given.
        type: `Fixed`, `Movable`, `EndEffector` or the type of a joint.
        daf: Whether it may be attached to other frames.
        pose: Constant pose in its parent, X_PF for a frame that is not a joint.
        steps: The coordinates of a joint, innermost first: what each adds to the
            frame's name, and its motion. The first has the pose, the last adds nothing.
        passive: Whether the joint is not in RobWork's q.
        depend: The element that makes it depend on another joint.
        coupling: The same, once that joint is found.
        parent: Full name of its parent, once that is found.
        limits: Of a joint with one coordinate.
        visuals: Shapes to draw.
        collisions: Shapes to test for collision.
        properties: By their names.
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
    steps: tuple[tuple[str, Joint], ...] = ()
    passive: bool = False
    depend: Element | None = None
    coupling: Coupling | None = None
    parent: str = ""
    limits: Limits = UNLIMITED
    visuals: list[Shape] = field(default_factory=list[Shape])
    collisions: list[Shape] = field(default_factory=list[Shape])
    properties: dict[str, Property] = field(default_factory=dict[str, Property])
    full_name: str = field(init=False)
    local_name: str = field(init=False)

    def __post_init__(self) -> None:
        """Join the names."""
        self.full_name = SEPARATOR.join((*self.scope, self.name))
        self.local_name = SEPARATOR.join((*self.scope[1:], self.name))

    @property
    def joint_name(self) -> str:
        """Return the name of the coordinate of a joint that has one."""
        written = self.properties.get(COORDINATE)
        return (written.text if written else "") or self.local_name

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
        """Return whether it has neither shapes nor properties of its own."""
        return not self.has_shapes and self.properties.keys() <= {COORDINATE}


@dataclass(frozen=True, slots=True)
class LoosePart:
    """An element that is read when all frames are known.

    Attributes:
        element: A shape, limit or property, or a reference to a setup.
        scope: The device and chains around it.
        last: The frame declared last before it.
    """

    element: Element
    scope: Scope
    last: FileFrame | None


@dataclass(slots=True, kw_only=True)
class FileSection:
    """The content of the workcell itself or of a device, in the order of the file.

    Attributes:
        element: Its declaration; the name of a device's element is its kind.
        name: Of the device; empty for the workcell.
        support: Full name of the parent of a device's base, which is its first frame.
        frames: The frames.
        parts: What is about frames, but not inside of them.
        setups: References to setups and calibrations.
        unread: What keeps the setups and calibrations that were not read.
        properties: By their names.
        wheels: How many frames of a mobile device are its base and wheels.
    """

    element: Element
    name: str = ""
    support: str = WORLD_FRAME
    frames: list[FileFrame] = field(default_factory=list[FileFrame])
    parts: list[LoosePart] = field(default_factory=list[LoosePart])
    setups: list[LoosePart] = field(default_factory=list[LoosePart])
    unread: list[Property] = field(default_factory=list[Property])
    properties: dict[str, Property] = field(default_factory=dict[str, Property])
    wheels: int = 0

    @property
    def unmarked_end(self) -> FileFrame | None:
        """Return the last frame of a serial device in which no end is marked."""
        is_serial = self.element.name == "SerialDevice"
        is_marked = any(frame.type == "EndEffector" for frame in self.frames)
        return self.frames[-1] if is_serial and not is_marked else None

    def joints(self) -> list[FileFrame]:
        """Return the joints of RobWork's q, in its order."""
        by_name = {frame.full_name: frame for frame in self.frames}
        parents = {name: frame.parent for name, frame in by_name.items()}
        ends = [name for name, frame in by_name.items() if frame.type == "EndEffector"]
        frames = map(by_name.__getitem__, q_order(self.element.name, parents, ends))
        return [n for n in frames if n.steps and not n.passive and n.depend is None]


class FrameIndex:
    """The world and all frames of a workcell by their full names."""

    def __init__(
        self, world: FileFrame, sections: Iterable[FileSection], report: Report
    ) -> None:
        """Collect the frames, and report names that are given twice."""
        self._report = report
        frames = [world, *(frame for section in sections for frame in section.frames)]
        named = ((frame.full_name, frame.element) for frame in frames)
        check_unique("frame", named, report)
        self.frames: dict[str, FileFrame] = {}
        for frame in frames:
            self.frames.setdefault(frame.full_name, frame)

    def find(self, name: str, scope: Scope) -> FileFrame | None:
        """Return the frame that a name means in a scope, None if nothing has it.

        RobWork searches the scope itself. Here the scopes around it are searched too,
        from the inside out, and a full name is understood.
        """
        # The innermost scope comes first, and the full name last.
        for count in range(len(scope), -1, -1):
            frame = self.frames.get(SEPARATOR.join((*scope[:count], name)))
            if frame is not None:
                return frame
        return None

    def hint(self, name: str, scope: Scope) -> str:
        """Return the sentence with the nearest name that is known in a scope."""
        prefix = SEPARATOR.join((*scope, ""))
        known = (full.removeprefix(prefix) for full in self.frames)
        return self._report.hint(name, list(islice(known, MOST_COMPARED)))

    def set_parents(self, section: FileSection) -> None:
        """Set the parents of the frames of the workcell or of a device."""
        is_serial = section.element.name == "SerialDevice"
        declared: set[str] = set()
        before = section.support
        for k, frame in enumerate(section.frames):
            if not section.name:
                self._set_parent(frame, WORLD_FRAME, self.frames if k else None)
                continue
            if 0 < k <= section.wheels:
                before = section.frames[0].full_name
            ignores = is_serial or k == 0
            self._set_parent(frame, before, None if ignores else declared)
            before = frame.full_name
            declared.add(before)

    def _set_parent(
        self, frame: FileFrame, usual: str, declared: Container[str] | None
    ) -> None:
        """Set the parent of a frame.

        usual: The parent of a frame without a refframe.
        declared: The frames that the refframe may mean, None if RobWork ignores it.
        """
        frame.parent = usual
        named, report, place = frame.refframe, self._report, frame.element.place
        parent = self.find(named, frame.scope)
        name = None if parent is None else parent.full_name
        if named == "" or name == usual:
            return
        if declared is None:
            report.warning(
                place,
                "refframe-ignored",
                f"the refframe {quote(named)} of {frame.element.label} is ignored, as "
                f"in RobWork: its parent is {quote(usual)}",
            )
        elif name is not None and name in declared:
            frame.parent = name
        else:
            where = "before it in the same device" if name else "anywhere"
            report.error(
                place,
                "unknown-frame",
                f"{frame.element.label} refers to the frame {quote(named)}, which is "
                f"not declared {where}",
                hint="" if name else self.hint(named, frame.scope),
            )

    def check_cycles(self) -> None:
        """Report frames that are their own ancestors, each cycle once.

        One of its frames gets the world as its parent, so that the rest can be read.
        """
        parents = {name: frame.parent for name, frame in self.frames.items()}
        parents.pop(WORLD_FRAME)
        for cycle in cycles(parents):
            frame = self.frames[cycle[0]]
            self._report.error(
                frame.element.place,
                "cycle",
                f"frame {quote(cycle[0])} is its own ancestor: {shown_cycle(cycle)}",
                hint="The parent of a device is the workcell's frame before it.",
            )
            frame.parent = WORLD_FRAME


def q_order(kind: str, parents: Mapping[str, str], ends: Sequence[str]) -> list[str]:
    """Return the frames of a device in the order in which RobWork's q has its joints.

    In a tree device, only those on the paths to its ends are in q.

    kind: Of the device.
    parents: The parent of each frame, in the order of the file.
    ends: The frames that are marked as ends; by default the last one is the end.
    """
    if kind != "TreeDevice":
        return list(parents)
    ordered: dict[str, None] = {}
    for end in ends or list(parents)[-1:]:
        path: list[str] = []
        name = end
        while name in parents and name not in ordered:
            path.append(name)
            name = parents[name]
        ordered.update(dict.fromkeys(reversed(path)))
    return list(ordered)


def frame_names(cell: Workcell) -> dict[str, str]:
    """Return, for each frame's full name in RobWork, its name in a loaded cell.

    `PA10.Joint1` is `PA10/Joint1` and `SchunkHand.f1.Joint2` is `SchunkHand/f1.Joint2`;
    a frame of the workcell is in the environment or in a part, and `WORLD` is `world`.
    """
    names = {WORLD_FRAME: WORLD}
    for manipulator in cell.manipulators:
        is_device = any(each.name == DEVICE for each in manipulator.properties)
        scope = (manipulator.name,) if is_device else ()
        for frame in manipulator.frame_refs:
            full = SEPARATOR.join((*scope, frame))
            names.setdefault(full, f"{manipulator.name}/{frame}")
    return names
