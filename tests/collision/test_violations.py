"""Validation of states: links that touch, beside limits of joints."""

from __future__ import annotations

import re

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.shapes import Box, HalfSpace, Mesh, Sphere

BALL = Sphere(radius=0.1)


def cell_of(*shapes: object, rules: arm.Rules | None = None) -> arm.Cell:
    """Two sledges on one rail, and a post on the floor at 1 m."""
    sledges = [
        arm.Link(
            name=name,
            parent="rail",
            joint=arm.joints.Prismatic(axis=(1, 0, 0)),
            limits=arm.Limits(lower=-1.0, upper=2.0),
            collisions=[BALL],
        )
        for name in ("left", "right")
    ]
    machine = arm.Manipulator(name="machine", links=[arm.Link(name="rail"), *sledges])
    posts = [
        arm.Manipulator(name=f"post{k}", links=[arm.Link(name="top", collisions=[s])])
        for k, s in enumerate(shapes)
    ]
    return arm.Cell(
        manipulators=[machine, *posts],
        mounts=[
            arm.Mount(
                manipulator=post.name, pose=arm.Pose.translation(1, 0, 0), bolted=False
            )
            for post in posts
        ],
        rules=rules or arm.Rules().include("machine/*", "machine/*"),
    )


def test_links_that_touch_are_named_with_their_distance():
    cell = cell_of(Box(size=(0.2, 0.2, 0.2)))
    own, other = cell.violations(cell.home.replace(q=[0.79, 0.95]))
    assert own.kind == "collision"
    assert own.links == ("machine/right", "post0/top")
    assert own.subject == "machine/right, post0/top"
    assert (other.kind, other.links) == (
        "self-collision",
        ("machine/left", "machine/right"),
    )
    assert other.value == pytest.approx(-0.04)
    assert other.limit == 0.0
    assert str(other) == (
        "Links 'machine/left' and 'machine/right' overlap by 0.04 m at (0.87, 0, 0)."
    )


def test_limits_and_contacts_are_reported_together():
    cell = cell_of()
    found = cell.violations(cell.home.replace(q=[-1.5, -1.5]))
    assert [each.kind for each in found] == ["below", "below", "self-collision"]
    state = cell.home.replace(q=[0.0, 0.25])
    assert cell.violations(state) == ()
    (near,) = cell.violations(state, margin=0.06)
    assert "are 0.05 m apart, nearer than the margin of 0.06 m at" in near.message
    assert near.limit == 0.06
    touching = cell.home.replace(q=[0.0, 0.0])
    assert cell.violations(touching, collisions=False) == ()
    (left,) = cell.violations(touching, rules=arm.Rules())
    assert (left.kind, left.subject) == ("untested", "machine")
    assert "include_self('machine')" in left.message
    meant = arm.Rules().exclude("machine/*", "machine/*")
    assert cell.violations(touching, rules=meant) == ()


def test_the_tolerance_lets_links_rest_on_each_other():
    cell = cell_of()
    resting = cell.home.replace(q=[0.0, 0.2 - 1e-9])
    assert len(cell.violations(resting)) == 1
    assert cell.violations(resting, tolerance=1e-6) == ()
    assert len(cell.violations(resting, tolerance=1e-6, margin=0.01)) == 1


def test_violations_are_the_contacts_of_a_check():
    cell = arm.example("two_arms_positioner")
    rng = np.random.default_rng(0)
    lower, upper = np.clip(cell.limits, -3.0, 3.0)
    some = 0
    for _ in range(30):
        state = cell.home.replace(q=rng.uniform(lower, upper))
        found = cell.violations(state, margin=0.02)
        contacts = cell.collision(state, margin=0.02).contacts(state.q)
        assert [each.links for each in found] == [each.links for each in contacts]
        for each in found:
            same = each.links[0].split("/")[0] == each.links[1].split("/")[0]
            assert each.kind == ("self-collision" if same else "collision")
            numbers = re.findall(r"(\S+) m\b", each.message)
            assert float(numbers[0]) == pytest.approx(abs(each.value), rel=1e-5)
        some += len(found)
    assert some > 20


def test_attachments_count():
    cell = cell_of(Box(size=(0.2, 0.2, 0.2)))
    touching = cell.home.replace(q=[0.0, 1.0])
    assert len(cell.violations(touching)) == 1
    assert cell.violations(touching.grip("post0", by="right")) == ()
    lowered = arm.Pose.translation(0, 0, -1)
    assert cell.violations(touching.place("post0", lowered)) == ()


def test_cells_without_shapes_compile_nothing(monkeypatch: pytest.MonkeyPatch):
    def refused(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("armillary.collision.violations.check_of", refused)
    for name in ("five_bar", "ur5e_on_oval"):
        cell = arm.example(name)
        assert cell.violations(cell.home) == ()


def test_what_cannot_be_tested_is_reported():
    cell = cell_of(HalfSpace(), HalfSpace())
    state = cell.home.replace(q=[-2.0, -1.0])
    *limits, untested = cell.violations(state)
    assert [each.kind for each in limits] == ["below"]
    assert (untested.kind, untested.subject) == ("untested", cell.name)
    assert np.isnan(untested.value)
    assert untested.message.startswith("Links are not tested for collision: ")
    assert "half spaces" in untested.message
    assert cell.violations(state, collisions=False) == tuple(limits)
    rules = cell.rules.exclude("post0/*", "post1/*")
    assert "untested" not in {e.kind for e in cell.violations(state, rules=rules)}


def test_meshes_without_files_are_reported():
    cell = cell_of(Mesh(file="post.stl"))
    assert [each.kind for each in cell.violations(cell.home.replace(q=[-1, 2]))] == [
        "untested"
    ]


def test_bad_arguments_are_refused():
    cell = cell_of()
    for margin in (-1.0, np.nan, np.inf):
        with pytest.raises(ModelError, match="margin must be"):
            cell.violations(cell.home, margin=margin)
    with pytest.raises(UnknownName):
        cell.violations(cell.home, rules=arm.Rules().exclude("machine/lef", "rail"))
