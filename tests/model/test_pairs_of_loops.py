"""Links that a closure joins are neighbours, as parent and child are."""

from __future__ import annotations

import armillary as arm


def four_bar(**more: object) -> arm.Cell:
    def hinge(x: float = 0.0) -> arm.Joint:
        before = arm.Pose.translation(x, 0, 0)
        return arm.joints.Revolute(axis=(0, 0, 1), precursor=before)

    def body(name: str, parent: str | None, length: float, at: float) -> arm.Link:
        return arm.Link(
            name=name,
            parent=parent,
            joint=arm.joints.Fixed() if parent is None else hinge(at),
            frames=[
                arm.Frame(name=f"{name}_end", pose=arm.Pose.translation(length, 0, 0))
            ],
            collisions=[arm.shapes.Sphere(radius=0.01)],
        )

    links = [
        body("ground", None, 0.3, 0.0),
        body("crank", "ground", 0.1, 0.0),
        body("coupler", "crank", 0.25, 0.1),
        body("rocker", "ground", 0.2, 0.3),
    ]
    manipulator = arm.Manipulator(name="four_bar", links=links, **more)
    return arm.Cell(manipulators=[manipulator])


def names(cell: arm.Cell) -> set[frozenset[str]]:
    pairs = cell.pairs(cell.home, rules=arm.Rules(within=True))
    return {frozenset(names) for names in pairs}


def test_links_that_a_closure_joins_are_adjacent():
    loop = arm.Closure("coupler_end", "rocker_end", position="xy")
    joined = frozenset(("four_bar/coupler", "four_bar/rocker"))
    open_chain, closed = four_bar(), four_bar(loops=[loop])
    assert joined in names(open_chain)
    assert names(closed) == names(open_chain) - {joined}


def test_links_between_which_a_rod_is_are_tested():
    rod = arm.Rod("crank_end", "rocker_end", length=0.25)
    assert names(four_bar(loops=[rod])) == names(four_bar())
