"""The loops of parallel devices: legs, and the junctions at which these meet.

RobWork divides the frames of a parallel device into legs. A leg is named after the
chain whose frames are in it; it begins at the frame on which its first one stands, and
its last frame is its end, which may be behind the chain. At a junction the ends of some
legs, or of legs one behind the other, coincide with all their axes; without junctions
those of all legs do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.robwork.frames import JUNCTION, SEPARATOR, FileSection
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property

__all__ = [
    "Junctions",
    "LegFrame",
    "closures",
    "joined",
    "read_junctions",
    "with_loops",
]

ALL: Final = "xyz"
OPEN: Final = "it is read as an open tree"
"""What is done with loops that cannot be closed, if readers may guess."""


class LegFrame(NamedTuple):
    """A frame of a parallel device.

    Attributes:
        name: Its name in the device.
        parent: That of its parent, empty for the base.
        chain: The chains around it, `a.b`; empty outside of chains.
    """

    name: str
    parent: str
    chain: str


class DeviceLeg(NamedTuple):
    """Frames one behind the other, the first of them that on which the leg stands."""

    chain: str
    frames: list[str]


Junctions = list[list[str]]
"""For each junction the legs that meet there, each a path of chains: `a b`."""


def legs_of(frames: Sequence[LegFrame]) -> list[DeviceLeg]:
    """Return the legs of a device by the rules of RobWork's loader.

    frames: In the order of the file, the base first.
    """
    legs: list[DeviceLeg] = []
    path, chain = [frame.name for frame in frames[:1]], ""
    for k in range(1, len(frames)):
        frame = frames[k]
        if _begins_leg(frames, k, chain):
            legs.append(_leg(path, chain, frames))
            path, chain = [frame.parent, frame.name], ""
        else:
            path.append(frame.name)
            chain = frame.chain or chain
    return [*legs, _leg(path, chain, frames)]


def _leg(path: list[str], chain: str, frames: Sequence[LegFrame]) -> DeviceLeg:
    """Return a leg; a chain of one frame gives its name too, other than in RobWork."""
    beside = next((f.chain for f in frames if chain == "" and f.name in path[1:2]), "")
    return DeviceLeg(chain or beside, path)


def _begins_leg(frames: Sequence[LegFrame], k: int, chain: str) -> bool:
    """Return whether a frame begins a leg; `chain` is that of the leg before it."""
    before = frames[k - 1].name
    # The frame before it is not its parent, so it is on another path.
    if frames[k].parent != before:
        return True
    # The frame before it branches: the leg ends there, except at the base.
    if k >= 2 and any(frame.parent == before for frame in frames[k + 1 :]):
        return True
    if not chain or k + 1 == len(frames):
        return False
    # It stands in front of another chain, which is a leg of its own.
    following = frames[k + 1]
    return following.parent == frames[k].name and following.chain not in {chain, ""}


def _ends(
    legs: Sequence[DeviceLeg], junctions: Junctions, base: str
) -> Iterator[tuple[list[str], str]]:
    """Yield for each junction the frames that coincide, and what is wrong with it."""
    # A chain is named by its path, or by its own name where that is enough.
    by_chain = {leg.chain.rpartition(SEPARATOR)[2]: leg for leg in legs}
    by_chain |= {leg.chain: leg for leg in legs}
    known = [
        [
            [by_chain[name] for name in path.split() if name in by_chain]
            for path in paths
        ]
        for paths in junctions
    ]
    for paths in known if junctions else [[[leg] for leg in legs]]:
        fault = ""
        for path in paths:
            if path and path[0].frames[0] != base:
                fault = (
                    f"the leg to {quote(path[-1].frames[-1])} begins at "
                    f"{quote(path[0].frames[0])}, not at the base {quote(base)}"
                )
            for one, other in pairwise(path):
                if one.frames[-1] != other.frames[0]:
                    fault = (
                        f"chain {quote(other.chain)} begins at "
                        f"{quote(other.frames[0])}, not at the end of "
                        f"{quote(one.chain)}"
                    )
        yield [path[-1].frames[-1] for path in paths if path], fault


def closures(frames: Sequence[LegFrame], junctions: Junctions) -> list[Closure] | str:
    """Return what closes the loops of a device, or why that is not clear."""
    loops: list[Closure] = []
    for ends, fault in _ends(legs_of(frames), junctions, frames[0].name):
        if fault:
            return fault
        # All coincide with the first: one closure fewer than there are ends.
        loops += (Closure(ends[0], end, ALL, ALL) for end in ends[1:])
    return loops


def joined(loops: Sequence[Closure | Rod]) -> set[frozenset[str]] | None:
    """Return the sets of frames that coincide; None if loops are of other kinds."""
    groups: list[set[str]] = []
    for loop in loops:
        if not isinstance(loop, Closure) or (loop.position, loop.rotation) != (
            ALL,
            ALL,
        ):
            return None
        ends = {loop.a, loop.b}
        # Closures that share a frame make the frames of all of them coincide.
        touched = [group for group in groups if group & ends]
        groups = [group for group in groups if not group & ends]
        groups.append(ends.union(*touched))
    return set(map(frozenset, groups))


def read_junctions(
    device: FileSection, report: Report
) -> tuple[list[Closure], list[Property]]:
    """Return the loops of a parallel device, and what keeps the names of its legs."""
    element = device.element
    local_names = {frame.full_name: frame.local_name for frame in device.frames}
    frames = [
        LegFrame(
            frame.local_name,
            local_names.get(frame.parent, ""),
            SEPARATOR.join(frame.scope[1:]),
        )
        for frame in device.frames
    ]
    legs = legs_of(frames)
    names = {leg.chain for leg in legs if leg.chain}
    short = {name.rpartition(SEPARATOR)[2]: name for name in names}
    junctions: Junctions = []
    place = element.place
    for junction in element.children_named("Junction"):
        place = junction.place
        ends = [chain.read_text() for chain in junction.children_named("Chains")]
        paths = [[short.get(c, c) for c in end.split()] for end in ends]
        junctions.append([" ".join(path) for path in paths])
        if len(paths) < 2:
            report.error(
                place,
                "bad-junction",
                f"a <Junction> of {element.label} has {len(paths)} <Chains>; at least "
                "two must meet",
            )
        for name in {name for path in paths for name in path} - names:
            report.error(
                place,
                "unknown-chain",
                f"{element.label} has no chain named {quote(name)} for its junction",
                hint=report.hint(name, names),
            )
    notes = [Property(name=JUNCTION, text=" | ".join(paths)) for paths in junctions]
    return _closures(frames, junctions, device, place, report), notes


def _closures(
    frames: Sequence[LegFrame],
    junctions: Junctions,
    device: FileSection,
    place: Place,
    report: Report,
) -> list[Closure]:
    """Return what closes the loops, nothing after a diagnostic."""
    label = device.element.label
    loops = closures(frames, junctions)
    if isinstance(loops, str):
        message = f"the loops of {label} cannot be closed: {loops}"
        report.guessing(OPEN).error(place, "bad-junction", message)
        return []
    if not loops and not report.faults:
        message = f"{label} has one leg; there is no loop to close"
        report.warning(place, "open-loop", message)
    return loops


def with_loops(
    made: Manipulator, loops: Sequence[Closure], device: FileSection, report: Report
) -> Manipulator:
    """Return a manipulator with loops; report it if they cannot be closed."""
    place, label = device.element.place, device.element.label
    try:
        closed = msgspec.structs.replace(made, loops=tuple(loops))
    except ModelError as error:
        message = f"{label}: {error}".removesuffix(".")
        report.guessing(OPEN).error(place, "bad-loop", message)
        return made
    # The mobility of the loops decides which joints are found, not the marks.
    system, links = closed.loop_system, closed.links
    names = closed.all_names
    passive = {link.coordinate for link in links if link.passive}
    in_loops = {names[k] for each in system.equations for k in each.joints}
    determined = [names[k] for k in system.found]
    free = [k for k in closed.joint_names if k in passive and k in in_loops]
    if determined or free:
        said = [
            *(
                [f"also determine {', '.join(map(quote, determined))}"]
                if determined
                else []
            ),
            *([f"leave {', '.join(map(quote, free))} free"] if free else []),
        ]
        report.warning(
            place,
            "loop-joints",
            f"the loops of {label} {' and '.join(said)}, other than its joints are "
            "marked: q holds the joints that are free",
        )
    return closed
