"""Which joints RobWork's q holds: in a tree, those on the ways to its ends."""

from __future__ import annotations

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.draft import NOWHERE, Draft, OutFrame

__all__ = ["joints_of_q", "mark_ends"]


def joints_of_q(draft: Draft, kind: str) -> list[tuple[str, str]]:
    """Return frame and coordinate of each joint in RobWork's q, in its order."""
    frames = {frame.name: frame for frame in draft.frames}
    order = list(frames)
    driven = dict(_driven(draft))
    if kind == "TreeDevice":
        marked = [f.name for f in draft.frames if f.type == "EndEffector"]
        order = list(
            dict.fromkeys(
                name
                for end in marked or order[-1:]
                for name in reversed(_path(end, frames))
            )
        )
    return [(name, driven[name]) for name in order if name in driven]


def _driven(draft: Draft) -> list[tuple[str, str]]:
    """Return frame and coordinate of each joint that is neither passive nor follows."""
    coordinates = {frame: name for name, frame in draft.joints.items()}
    return [
        (frame.name, coordinates[frame.name])
        for frame in draft.frames
        if frame.moves and not frame.passive and frame.drive is None
    ]


def _path(name: str, frames: dict[str, OutFrame]) -> list[str]:
    path: list[str] = []
    while name:
        path.append(name)
        name = frames[name].parent
    return path


def mark_ends(draft: Draft, report: Report) -> None:
    """See that every driven joint is on the way to an end, and so in RobWork's q."""
    frames = {frame.name: frame for frame in draft.frames}
    carriers = {frame.parent for frame in draft.frames}
    leaves = [frame for frame in draft.frames if frame.name not in carriers]
    driven = {frame for frame, _ in _driven(draft)}
    covered: set[str] = set()
    marked: list[str] = []
    for leaf in sorted(leaves, key=lambda frame: frame.type != "EndEffector"):
        path = set(_path(leaf.name, frames))
        is_needed = bool(driven & path - covered)
        covered |= path if is_needed or leaf.type == "EndEffector" else set[str]()
        if is_needed and leaf.type != "EndEffector":
            marked.append(_mark(leaf, draft))
    if marked:
        report.note(
            NOWHERE,
            "end-effectors",
            f"{quote(marked[0])}"
            + (f" and {len(marked) - 1} more frames are" if len(marked) > 1 else " is")
            + f" an end of {quote(draft.manipulator.name)} here, so that RobWork's q "
            "holds every joint",
        )


def _mark(leaf: OutFrame, draft: Draft) -> str:
    """Make an end of a frame, or of one on it if it is a joint; return its name."""
    end = leaf
    if leaf.moves:
        end = OutFrame(name=draft.derive(f"{leaf.name}_end"), parent=leaf.name)
        draft.frames.insert(draft.frames.index(leaf) + 1, end)
    end.type = "EndEffector"
    return end.name
