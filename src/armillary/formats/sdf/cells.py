"""Models to a cell: a manipulator for each part, mounts, and rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import FreeNames
from armillary.formats.sdf.graph import Edge, SdfPart, parts_of, read_tops
from armillary.formats.sdf.parts import OPEN, PartBuilder
from armillary.formats.sdf.rods import FoundRod, take_rods
from armillary.formats.sdf.scopes import Frames, Scope, SdfNode
from armillary.model.frame import Frame
from armillary.model.link import Link
from armillary.model.link_pattern import links_of
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.rules import Rules
from armillary.model.workcell import DEFAULT_RULES, Workcell
from armillary.spatial.pose import IDENTITY

__all__ = ["ENVIRONMENT", "SdfCellBuilder"]

ENVIRONMENT: Final = "environment"
"""The manipulator of frames that are attached to the world."""


class SdfCellBuilder:
    """Makes a cell of a world."""

    def __init__(self, world: Scope, report: Report) -> None:
        self._world = world
        self._report = report
        self._frames = Frames(report)
        self._mounts: list[Mount] = []
        self._places: dict[SdfNode, str] = {}
        self._fixtures: set[SdfNode] = set()
        self._free = FreeNames({WORLD})

    def cell(self, name: str) -> Workcell:
        """Return the cell.

        Raises:
            FormatError: With all diagnostics, if there are errors.
        """
        report = self._report
        tops = read_tops(self._world)
        rods = take_rods(self._world, tops, report)
        parts = parts_of(self._world, tops, self._frames, report)
        report.raise_if_errors()
        named = [(part, self._part_name(part)) for part in parts]
        made = [PartBuilder(p, n, self._frames, report) for p, n in named]
        for builder in made:
            is_fixture = builder.part.on is not None and builder.is_rigid
            for node, place in builder.places():
                self._places[node] = f"{builder.name}/{place}"
                if is_fixture:
                    self._fixtures.add(node)
        for builder in made:
            builder.read_joints()
        loops = self._loops_between(made, rods)
        manipulators = [builder.manipulator() for builder in made]
        for builder in made:
            self._mount(builder)
        environment = self._environment()
        report.raise_if_errors()
        kept = [m for m in (*environment, *manipulators) if m is not None]
        if not kept and self._is_incomplete():
            message = f"{self._world.label} has no link without what is left out"
            report.error(self._world.place, "no-model", message)
            report.raise_if_errors()
        cell = Workcell(name=name, manipulators=tuple(kept), mounts=tuple(self._mounts))
        cell = cell.replace(rules=self._rules(named, cell))
        return self._closed(cell, loops)

    def _loops_between(
        self, made: Sequence[PartBuilder], rods: Sequence[FoundRod]
    ) -> list[tuple[Place, Closure | Rod]]:
        """Return the loops between parts; give each part its own rods."""
        of = {node: (each, name) for each in made for node, name in each.places()}
        found: list[tuple[Place, Closure | Rod]] = []
        for rod in rods:
            if not {rod.a, rod.b} <= of.keys():
                view = self._report.tolerating("it is left out")
                message = f"rod {quote(rod.name)} is not between links of models"
                view.error(rod.place, "bad-loop", message)
                continue
            (builder, a), (other, b) = of[rod.a], of[rod.b]
            if builder is other:
                builder.add_rod(rod, a, b)
            else:
                ends = f"{builder.name}/{a}", f"{other.name}/{b}"
                found.append((rod.place, builder.rod(rod, *ends)))
        for builder in made:
            for edge in builder.part.outer:
                other, _ = of[edge.child]
                closure = builder.closure_with(edge, other)
                if closure is not None and edge.node is not None:
                    found.append((edge.node.place, closure))
        return sorted(found, key=lambda each: (each[0].line, each[0].column))

    def _closed(
        self, cell: Workcell, loops: Sequence[tuple[Place, Closure | Rod]]
    ) -> Workcell:
        """Return a cell with loops between its manipulators."""
        if not loops:
            return cell
        try:
            closed = cell.replace(loops=tuple(loop for _, loop in loops))
            _ = closed.joints.system  # which raises if they cannot be closed
        except ModelError as error:
            message = f"{self._world.label}: {error}".removesuffix(".")
            self._report.guessing(OPEN).error(loops[0][0], "bad-loop", message)
            self._report.raise_if_errors()
            return cell
        return closed

    def _is_incomplete(self) -> bool:
        """Return whether a model is missing in the world, or in one of its models."""
        scopes = [n.inner for n in self._world.of_kind("model") if n.inner]
        return any(scope.lost for scope in (self._world, *scopes))

    def _part_name(self, part: SdfPart) -> str:
        """Return a free name: that of the model, for its further parts with a link."""
        top = part.tops[0]
        wanted = top.node.full_name
        canonical = self._frames.canonical(top.scope)
        if canonical not in part.links:
            root = part.root or part.links[0]
            wanted = f"{wanted}_{root.name}"
        plain = wanted.replace("/", "_")
        name = self._free.derive(plain)
        if name != wanted:
            self._report.warning(
                top.node.place,
                "renamed",
                f"the name {quote(wanted)} cannot be kept; it becomes {quote(name)}",
            )
        return name

    def _mount(self, builder: PartBuilder) -> None:
        """Mount the base of a part: on the world, or on what a joint holds it to."""
        part, name, frames = builder.part, builder.name, self._frames
        if isinstance(part.on, Edge):
            edge = part.on
            assert edge.node is not None and edge.joint is not None, "it is a joint"
            path = edge.node.scope.path(edge.joint.parent, edge.node.model_frame) or []
            on = path[-1] if path and path[-1] in self._places else edge.parent
            assert on is not None, "it is between models"
            pose = frames.relative(edge.child, on, self._world)
            self._mounts.append(Mount(manipulator=name, on=self._places[on], pose=pose))
            return
        below = self._standing_on(part)
        if below is not None and part.root is not None:
            pose = frames.relative(part.root, below, self._world)
            on_frame = self._places[below]
            mount = Mount(manipulator=name, on=on_frame, pose=pose, bolted=False)
            self._mounts.append(mount)
            return
        pose = IDENTITY if part.root is None else builder.in_world(part.root)
        if part.on is not None or not pose.is_identity:
            bolted = part.on is not None
            self._mounts.append(Mount(manipulator=name, pose=pose, bolted=bolted))

    def _standing_on(self, part: SdfPart) -> SdfNode | None:
        """Return the frame of a fixture that a free model is placed relative to."""
        top = part.tops[0]
        below = self._frames.base_of(top.node)
        if part.on is not None or part.root not in top.links or below is None:
            return None
        return below if below in self._fixtures else None

    def _environment(self) -> list[Manipulator]:
        """Return the manipulator of the frames of the world, if it has any."""
        frames: list[Frame] = []
        names = FreeNames(set())
        for node in self._world.of_kind("frame"):
            if isinstance(self._frames.link_of(node), Scope):
                pose = self._frames.in_scope(node)
                frames.append(Frame(name=names.derive(node.full_name), pose=pose))
        if not frames:
            return []
        name = self._free.derive(ENVIRONMENT)
        base = Link(name=names.derive(ENVIRONMENT), frames=tuple(frames))
        self._mounts.insert(0, Mount(manipulator=name))
        return [Manipulator(name=name, links=(base,))]

    # Rules

    def _rules(self, named: Sequence[tuple[SdfPart, str]], cell: Workcell) -> Rules:
        """Return the rules: whose links are tested against each other."""
        rules = DEFAULT_RULES
        silent: list[tuple[SdfPart, str]] = []
        for part, name in named:
            said = part.tops[0].scope.self_collide
            links = cell.manipulators[cell.number(name)].links
            own = [link for link in part.links if link.body.self_collide]
            if said:
                rules = rules.include_self(name)
            elif own:
                for link in own:
                    rules = rules.include(self._places[link], links_of(name))
            elif said is None and sum(bool(k.collision_shapes) for k in links) > 1:
                silent.append((part, name))
        if not silent:
            return rules
        part, first = silent[0]
        self._report.note(
            part.tops[0].node.place,
            "self-collision",
            f"the file does not say <self_collide>, so {quote(first)} is tested "
            "against itself, except links that share a joint or touch at home",
            hint="Say it in the file, or use self_collision=False.",
        )
        return rules.include_self(*(name for _, name in silent))
