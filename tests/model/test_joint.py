"""The joint contract: what a user may write, and what is refused and why."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from armillary import Cell, Link, Manipulator
from armillary.errors import JointError, ShapeError
from armillary.model.joint import RESERVED, Joint
from armillary.model.joints import (
    CircleTrack,
    Fixed,
    OvalTrack,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.unit import Unit
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.testing import check_joint, random_pose
from armillary.trace import evaluate, trace
from armillary.trace.tape import Tape

METRE, RADIAN, OTHER = Unit.METRE, Unit.RADIAN, Unit.OTHER


class Circle(Joint):
    """Ride a circle."""

    radius: float = 3.0
    unit = METRE

    def pose(self, q):
        turn = Pose.rotation_z(q / self.radius)
        return turn @ Pose.translation(self.radius, 0, 0)


def rows(q: Any) -> list[list[Any]]:
    """A rotation about z as nested lists."""
    return [[np.cos(q), -np.sin(q), 0], [np.sin(q), np.cos(q), 0], [0, 0, 1]]


def matrix(q: Any) -> list[list[Any]]:
    """A rotation about z by q, at (q, 2, 0), as nested lists."""
    tops = [[*row, p] for row, p in zip(rows(q), (q, 2, 0), strict=True)]
    return [*tops, [0, 0, 0, 1]]


FORMS = {
    "nested lists": matrix,
    "nested tuples": lambda q: tuple(map(tuple, matrix(q))),
    "object array": lambda q: np.array(matrix(q), dtype=object),
    "three rows": lambda q: matrix(q)[:3],
    "pair of lists": lambda q: (rows(q), [q, 2, 0]),
    "list of two": lambda q: [rows(q), (q, 2, 0)],
    "pair of arrays": lambda q: (
        np.array(rows(q), dtype=object),
        np.array([q, 2.0, 0.0], dtype=object),
    ),
    "pose of arrays": lambda q: Pose(
        np.array(rows(q), dtype=object), np.array([q, 2, 0], dtype=object)
    ),
    "pose of NumPy numbers": lambda q: (
        Pose.translation(q, np.int64(2), np.float32(0.0)) @ Pose.rotation_z(q)
    ),
    "product of arrays": lambda q: np.eye(4) @ np.array(matrix(q), dtype=object),
}


def joint_of(function: Any, **namespace: Any) -> Joint:
    """A joint without parameters with this pose."""
    body = {"pose": lambda self, q: function(q), **namespace}
    return type("Made", (Joint,), body)()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_pose_is_taken(form: str):
    joint = joint_of(FORMS[form])
    for q in (0.0, 0.7, -12.0):
        expected = Pose.from_matrix(matrix(q))
        assert joint.transform(q).approx_equal(expected, 1e-14)
        assert isinstance(joint.transform(q).rotation[0][0], float)


def test_constants_may_be_numpy_arrays():
    X = random_pose(np.random.default_rng(5))
    joint = joint_of(lambda q: X.matrix())
    assert joint.transform(3.0).approx_equal(X, 1e-15)
    assert (joint.velocity(1.0, 2.0) == 0.0).all()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda q: None, "None (is a return missing?)"),
        (lambda q: q, "it returned one number"),
        (lambda q: 3.0, "it returned one number"),
        (lambda q: "abc", "it returned a str"),
        (lambda q: [[1, 0], [0, 1]], "shape"),
        (lambda q: np.eye(3), "an array of shape (3, 3)"),
        (lambda q: [[1, 0, 0, 0], [0, 1, 0], [0, 0, 1, 0]], "it returned"),
        (lambda q: (np.eye(3), [1.0, 2.0]), "A vector has shape (3,), not (2,)"),
        (lambda q: (np.eye(2), [1.0, 2.0, 3.0]), "(2, 2)"),
        (lambda q: {"a": 1}, "it returned a dict"),
        (lambda q: Pose, "it returned"),
        (lambda q: [["x"] * 4] * 4, "number"),
        (lambda q: np.full((4, 4), np.nan), "finite"),
        (lambda q: 2.0 * np.eye(4), "row 0 0 0 1"),
        (lambda q: np.diag([1.0, 1.0, -1.0, 1.0]), "reflection"),
        (lambda q: np.diag([1.0, 1.0, 1.1, 1.0]), "sheared or scaled"),
        (lambda q: ([[q, 0, 0], [0, 1, 0], [0, 0, 1]], (0, 0, 0)), "sheared or scaled"),
        (
            lambda q: ([[1, 0, 0], [0, 1, 0], [0, 0, -1]], (q, 0, 0)),
            "reflection (determinant -1)",
        ),
        (
            lambda q: ([[0.6, -0.8000001, 0], [0.8000001, 0.6, 0], [0, 0, 1]],
                       (q, 0, 0)),
            "all their digits",
        ),
    ],
)  # fmt: skip
def test_what_is_not_a_pose_is_refused(returned: Any, message: str):
    with pytest.raises(JointError) as error:
        joint_of(returned).transform(0.5)
    assert message in str(error.value)
    assert "Made.pose" in str(error.value)


def test_a_pose_that_is_undefined_at_zero_is_fine():
    class Log(Joint):
        unit = METRE

        def pose(self, q):
            return Pose.translation(np.log(q), np.sqrt(q - 1.0), 0.0)

        def subspace(self, q):
            return (1.0 / q, 0.5 / np.sqrt(q - 1.0), 0.0, 0.0, 0.0, 0.0)

    joint = Log()
    assert joint.transform(2.0).position == pytest.approx((math.log(2.0), 1.0, 0.0))
    assert math.isnan(joint.transform(0.0).position[1])
    assert joint.velocity(2.0, 3.0)[:2] == pytest.approx([1.5, 1.5])
    assert not np.isfinite(joint.velocity(0.0, 1.0)).all()
    with pytest.raises(JointError, match="scaled"):
        joint.scaled(2.0)


def loop(q):
    while q > 0.0:
        q = q - 1.0
    return Pose.translation(q, 0.0, 0.0)


def recurse(q):
    return recurse(q + 1.0)


def divide(q):
    return Pose.translation(q / 0.0, 1 // 0, 0.0)


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        (loop, "A loop must not end on a traced value"),
        (recurse, "recurses without end"),
        (divide, "ZeroDivisionError"),
        (lambda q: Pose.translation(math.sin(q), 0.0, 0.0), "traced scalar"),
        (lambda q: Pose.translation([1, 2][q], 0.0, 0.0), "traced scalar"),
        (lambda q: Pose.translation("a", 0.0, 0.0), "'a'"),
        (lambda q: undefined_name, "undefined_name"),  # noqa: F821
    ],
)
def test_what_cannot_be_traced_says_where(pose: Any, message: str):
    with pytest.raises(JointError) as error:
        joint_of(pose).transform(0.5)
    assert message in str(error.value)
    assert "Made.pose" in str(error.value)


def test_a_trace_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch):
    def endless(q):
        while True:
            q = 0.5 * q + 1.0

    monkeypatch.setattr(Tape.__init__, "__defaults__", (5000,))
    with pytest.raises(JointError, match="more than 5000 operations"):
        joint_of(endless).transform(0.0)


def test_a_wrong_signature_is_reported():
    class Deaf(Joint):
        def pose(self):
            return Pose.identity()

    with pytest.raises(JointError, match=r"Deaf\.pose.*positional argument"):
        Deaf().transform(0.0)


def test_a_pose_must_depend_on_q_and_parameters_alone():
    count = itertools.count()
    with pytest.raises(JointError, match="something else when it was called again"):
        joint_of(lambda q: Pose.translation(q, next(count), 0.0)).transform(0.0)
    with pytest.raises(JointError, match="something else"):
        joint_of(lambda q: Pose.translation(q, random.random(), 0.0)).transform(0.0)


def test_branches_of_a_stateful_pose_are_reported():
    count = itertools.count()

    def pose(q):
        return Pose.translation(q if q < next(count) else -q, 0.0, 0.0)

    with pytest.raises(JointError, match=r"Made\.pose"):
        joint_of(pose).transform(0.0)


# Classes.


def test_a_class_with_its_own_init_is_refused():
    with pytest.raises(JointError, match=r"Circle defines __init__.* annotate"):

        class Circle(Joint):  # pyright: ignore[reportUnusedClass]
            def __init__(self, radius: float):
                self.radius = radius

            def pose(self, q: Any) -> Any:
                return Pose.rotation_z(q)


def test_a_class_without_a_pose_is_refused():
    class Empty(Joint):
        length: float = 1.0

    for kind in (Joint, Empty):
        with pytest.raises(JointError, match=f"{kind.__name__} has no pose"):
            kind()


@pytest.mark.parametrize("unit", ["m", None, 1.0, "METRE"])
def test_a_wrong_unit_is_refused_with_the_class(unit: Any):
    with pytest.raises(JointError, match=r"Made\.unit is .*METRE, RADIAN or OTHER"):
        joint_of(matrix, unit=unit)


OF_THE_CLASS = {"unit", "tag", "token", "library", "elements", "motor", "lengths"}


@pytest.mark.parametrize("name", sorted(OF_THE_CLASS))
def test_what_belongs_to_the_class_is_not_a_parameter(name: str):
    body = {"__annotations__": {name: Any}, "pose": matrix}
    with pytest.raises(JointError, match=rf"Made\.{name} belongs to the class"):
        type("Made", (Joint,), body)(**{name: METRE})
    with pytest.raises(JointError, match=rf"Made\.{name} belongs to the class"):
        type("Made", (Joint,), {**body, name: METRE})()


@pytest.mark.parametrize("name", sorted(RESERVED - OF_THE_CLASS))
def test_parameters_may_not_hide_methods(name: str):
    kind = type("Made", (Joint,), {"__annotations__": {name: float}, "pose": matrix})
    with pytest.raises(JointError, match=f"'{name}', which is the name of a method"):
        kind(**{name: 1.0})


def test_subclasses_of_a_users_joint_are_other_joints():
    class Lifted(Circle):
        height: float = 0.5

        def pose(self, q):
            return Pose.translation(0.0, 0.0, self.height) @ super().pose(q)

    class Same(Circle):
        pass

    joint = Lifted(radius=2.0, height=1.0)
    assert joint.transform(0.0).position == (2.0, 0.0, 1.0)
    assert Lifted.tag == "Lifted"
    assert Same(2.0) != Circle(2.0)
    assert not Same(2.0).approx_equal(Circle(2.0), 1.0)
    assert joint.scaled(2.0) == Lifted(radius=4.0, height=2.0)
    check_joint(joint)


def test_lengths_are_not_inherited():
    class Lifted(CircleTrack):
        height: float = 0.5

        def pose(self, q):
            return Pose.translation(0.0, 0.0, self.height) @ super().pose(q)

    assert Lifted(radius=1.0).scaled(2.0) == Lifted(radius=2.0, height=1.0)


def test_a_users_post_init_does_not_switch_off_the_checks():
    class Odd(Circle):
        def __post_init__(self):
            msgspec.structs.force_setattr(self, "radius", 2 * self.radius)

    assert Odd(2).radius == 4.0
    assert isinstance(Odd(2).radius, float)
    with pytest.raises(JointError, match="finite"):
        Odd(math.inf)
    with pytest.raises(JointError, match="has no pose"):
        type("Bare", (Joint,), {"__post_init__": lambda self: None})()


def test_the_rules_of_a_class_are_applied():
    class Picky(Circle):
        def check(self):
            if self.radius < 1.0:
                raise JointError("too small")

    assert Picky(1.0).radius == 1.0
    with pytest.raises(JointError, match="too small"):
        Picky(0.5)
    with pytest.raises(JointError, match="too small"):
        Picky(1.0).scaled(0.5)


def test_defaults_are_checked_too():
    class Defaulted(Joint):
        radius: float = 3
        points: tuple[float, ...] = ()
        bad: float = math.nan

        def pose(self, q):
            return Pose.translation(self.radius * q, 0.0, 0.0)

    with pytest.raises(JointError, match=r"Defaulted\.bad is nan"):
        Defaulted()
    assert isinstance(Defaulted(bad=1.0).radius, float)


def test_joints_cannot_be_changed():
    joint = Circle(2.0)
    with pytest.raises(AttributeError):
        joint.radius = 3.0


# Values.


def test_equality_is_exact_and_of_one_class():
    assert Circle(2) == Circle(2.0) == Circle(np.float64(2.0))
    assert hash(Circle(2)) == hash(Circle(2.0))
    assert Circle(2.0) != Circle(math.nextafter(2.0, 3.0))
    assert Circle(2.0) != CircleTrack(radius=2.0)
    assert Circle(2.0) != Circle(2.0, precursor=Pose.translation(0.0, 0.0, 1e-12))
    assert Circle(2.0) in {Circle(2.0)}


def test_near_equality_is_inclusive_and_sees_everything():
    joint = Circle(2.0, precursor=Pose.translation(1.0, 0.0, 0.0))
    assert joint.approx_equal(Circle(2.5, precursor=joint.precursor), 0.5)
    assert not joint.approx_equal(Circle(2.5, precursor=joint.precursor), 0.49)
    assert not joint.approx_equal(Circle(2.0), 0.99)
    assert joint.approx_equal(Circle(2.0), 1.0)
    assert not joint.approx_equal(joint, math.nan)
    assert not joint.approx_equal(joint, -1.0)
    assert not joint.approx_equal("joint", 1e9)
    inward = CircleTrack(radius=1.0, inward=True)
    assert not inward.approx_equal(CircleTrack(radius=1.0), 5.0)


def test_the_precursor_may_be_an_array():
    X = random_pose(np.random.default_rng(1))
    for given in (X.matrix(), X.matrix().tolist(), X):
        joint = Circle(2.0, precursor=given)
        assert joint.precursor.approx_equal(X, 0.0)
        assert joint == Circle(2.0, precursor=X)
        assert Circle(2.0).prepend(given) == joint
        assert Circle(2.0).offset_inboard(given) == joint


@pytest.mark.parametrize(
    ("precursor", "message"),
    [
        (None, "must be a Pose or a 4x4 array"),
        (np.eye(3), r"not \(3, 3\)"),
        (2.0 * np.eye(4), "not a pose"),
        (np.full((4, 4), math.nan), "finite"),
        (Pose.translation(math.inf, 0.0, 0.0), "not finite"),
        (Pose(((1.0, 0.1, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0)),
         "sheared"),
        (Pose(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)), (0.0, 0.0, 0.0)),
         "reflection"),
        (Pose(np.eye(2), np.zeros(3)), r"\(2, 2\)"),
        ("identity", "Pose"),
    ],
)  # fmt: skip
def test_what_is_not_a_precursor_is_refused(precursor: Any, message: str):
    with pytest.raises(JointError, match=message):
        Circle(2.0, precursor=precursor)


def test_a_pose_of_arrays_becomes_a_value():
    joint = Circle(2.0, precursor=Pose(np.eye(3), np.array([1, 0, 0])))
    assert joint == Circle(2.0, precursor=Pose.translation(1.0, 0.0, 0.0))
    assert hash(joint) == hash(Circle(2.0, precursor=Pose.translation(1, 0, 0)))


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda j: pickle.loads(pickle.dumps(j))]
)
def test_copies_are_equal_and_move_alike(duplicate: Any):
    joint = Circle(2.0, precursor=random_pose(np.random.default_rng(2)))
    other = duplicate(joint)
    assert other == joint
    assert hash(other) == hash(joint)
    assert other.motion is joint.motion


def test_equal_joints_share_one_motion_whatever_is_in_front():
    X = random_pose(np.random.default_rng(3))
    assert Circle(2.0, precursor=X).motion is Circle(2.0).motion
    assert Circle(2.0).motion is not Circle(2.5).motion


# What follows.


def test_prepend_and_offset_are_two_operations():
    random = np.random.default_rng(4)
    P, X = random_pose(random), random_pose(random)
    joint = Circle(2.0, precursor=P)
    assert joint.prepend(X).precursor == X @ P
    assert joint.offset_inboard(X).precursor == P @ X
    assert not joint.prepend(X).approx_equal(joint.offset_inboard(X), 1e-3)
    assert joint.precursor == P


@pytest.mark.parametrize("call", ["transform", "velocity", "acceleration"])
@pytest.mark.parametrize("q", [np.zeros(3), [1.0, 2.0], None, "a", 1j])
def test_many_coordinates_are_reported_where_to_go(call: str, q: Any):
    arguments = {"transform": (), "velocity": (1.0,), "acceleration": (1.0, 1.0)}
    with pytest.raises(ShapeError, match="One number was expected"):
        getattr(Circle(2.0), call)(q, *arguments[call])


def test_one_number_may_be_any_kind_of_number():
    joint = Circle(2.0)
    for q in (1, np.int32(1), np.float32(1.0), np.array(1.0), True):
        assert joint.transform(q) == joint.transform(1.0)


def test_nan_in_gives_nan_out():
    joint = Circle(2.0)
    X = joint.transform(math.nan)
    assert math.isnan(X.position[0])
    assert math.isnan(X.rotation[0][0])
    assert X.position[2] == 0.0
    assert np.isnan(joint.velocity(1.0, math.nan)[1])


def test_forces_of_a_circle():
    joint = Circle(2.0)
    wrench = (3.0, 5.0, 7.0, 11.0, 13.0, 17.0)
    assert joint.torque_to_exert(0.7, wrench) == pytest.approx(5.0 + 17.0 / 2.0)
    inertia = SpatialInertia.from_centre(4.0, (0.0, 0.0, 0.0), np.diag([1.0, 2.0, 3.0]))
    assert joint.unit_acceleration_torque(0.7, inertia) == pytest.approx(
        4.0 + 3.0 / 4.0
    )
    matrix = inertia.matrix()
    assert joint.unit_acceleration_torque(0.7, matrix) == pytest.approx(4.75)
    with pytest.raises(ShapeError, match=r"\(6, 6\), not \(3, 3\)"):
        joint.unit_acceleration_torque(0.7, np.eye(3))
    with pytest.raises(ShapeError):
        joint.torque_to_exert(0.7, (1.0, 2.0))


def test_a_slider_hides_the_mass_along_it_and_passes_the_rest():
    inertia = SpatialInertia.from_centre(4.0, (0.0, 0.0, 0.0), np.diag([1.0, 2.0, 3.0]))
    felt = Prismatic(axis=(1.0, 0.0, 0.0)).articulated_inertia(0.0, inertia)
    assert np.diag(felt) == pytest.approx([0.0, 4.0, 4.0, 1.0, 2.0, 3.0])
    whole = Fixed().articulated_inertia(0.0, inertia)
    assert whole == pytest.approx(inertia.matrix())
    # At the end of a slide of 2 m along x the body turns about y and z far away.
    far = Prismatic(axis=(1.0, 0.0, 0.0)).articulated_inertia(2.0, inertia)
    assert np.diag(far)[3:] == pytest.approx([1.0, 2.0 + 16.0, 3.0 + 16.0])


def test_scaling_by_what_is_not_a_factor_is_refused():
    for factor in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(JointError, match="above 0"):
            Circle(2.0).scaled(factor)


def test_the_precursor_scales():
    joint = Circle(2.0, precursor=Pose.translation(1.0, 2.0, 3.0)).scaled(3.0)
    assert joint == Circle(6.0, precursor=Pose.translation(3.0, 6.0, 9.0))


def test_tags_default_to_the_name_of_the_class():
    class Renamed(Circle):
        tag = "circle-2"

    class Child(Renamed):
        pass

    assert (Circle.tag, Renamed.tag, Child.tag) == ("Circle", "circle-2", "Child")


def test_what_is_as_usual_is_not_printed():
    assert repr(Circle(2.0)) == "Circle(radius=2.0)"
    assert repr(Prismatic()) == "Prismatic()"
    assert repr(Circle(2.0).scaled(2.0)) == "Circle(radius=4.0)"
    assert repr(Circle(2.0, precursor=np.eye(4))) == "Circle(radius=2.0)"
    assert "precursor=Pose(" in repr(Fixed(precursor=Pose.translation(1.0, 0.0, 0.0)))


def test_a_joint_may_be_written_with_any_of_the_units():
    for unit in (METRE, RADIAN, OTHER):
        assert joint_of(matrix, unit=unit).unit is unit
    assert (Revolute.unit, OvalTrack.unit, Fixed.unit) == (RADIAN, METRE, OTHER)


# Joints inside joints.


class Both(Joint):
    """Two joints in a row, the second one a ratio as fast."""

    first: Joint
    more: tuple[Joint, ...] = ()
    ratio: float = 1.5

    def pose(self, q):
        X = self.first.transform(q)
        for joint in self.more:
            X = X @ joint.transform(self.ratio * q)
        return X


class Stopped(Joint):
    """A joint that stops at a coordinate."""

    inner: Both
    stop: float

    def pose(self, q):
        return self.inner.transform(q if q < self.stop else self.stop)


NESTED = Stopped(
    inner=Both(
        first=Revolute(axis=(0, 0, 1), precursor=Pose.translation(1.0, 0.5, 0.0)),
        more=(
            Screw(axis=(1, 0, 0), pitch=0.2, precursor=Pose.rotation_x(0.4)),
            PaulRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4),
        ),
        precursor=Pose.rotation_y(0.3),
    ),
    stop=1.1,
)


def test_a_joint_inside_a_joint_moves_by_its_precursor_too():
    inner = NESTED.inner
    for q in (-0.7, 0.4, 1.09):
        X = inner.precursor @ inner.first.precursor @ inner.first.pose(q)
        for joint in inner.more:
            X = X @ joint.precursor @ joint.pose(1.5 * q)
        assert NESTED.transform(q).approx_equal(X, 1e-14)
    assert NESTED.transform(2.0) == NESTED.transform(1.1)
    assert NESTED.transform(5).approx_equal(inner.transform(1.1), 1e-15)


def test_transform_records_on_traced_scalars():
    program = trace(lambda q: NESTED.transform(q).entries, name="t", q=())
    for q in (-0.7, 1.5):
        assert evaluate(program, [q]) == pytest.approx(NESTED.transform(q).entries)


@pytest.mark.thorough
@pytest.mark.parametrize("joint", [NESTED, NESTED.inner], ids=["stopped", "both"])
def test_joints_inside_joints_obey_every_law(joint: Joint):
    check_joint(joint)


def test_a_cell_moves_by_joints_inside_joints():
    tip = Link(name="tip", parent="base", joint=NESTED.prepend(Pose.rotation_z(0.2)))
    arm = Manipulator(name="arm", links=[Link(name="base"), tip])
    cell = Cell(manipulators=[arm])
    Q = np.linspace(-1.0, 2.0, 7)[:, None]
    expected = [tip.joint.transform(q).matrix() for (q,) in Q]
    np.testing.assert_allclose(cell.fk("tip")(Q), expected, atol=1e-14)


def test_joints_inside_joints_count_in_values():
    other = msgspec.structs.replace(NESTED.inner, first=Revolute(axis=(0, 1, 0)))
    changed = msgspec.structs.replace(NESTED, inner=other)
    assert changed != NESTED
    assert {changed, NESTED, pickle.loads(pickle.dumps(NESTED))} == {changed, NESTED}
    near = Revolute(axis=(0, 0, 1), precursor=Pose.translation(1.0, 0.5, 1e-9))
    moved = msgspec.structs.replace(
        NESTED, inner=msgspec.structs.replace(NESTED.inner, first=near)
    )
    assert NESTED.approx_equal(moved, 1e-8)
    assert not NESTED.approx_equal(moved, 1e-10)


def test_parameters_that_are_not_joints_are_refused():
    with pytest.raises(JointError, match=r"Both.first must be a Joint, not 3"):
        Both(first=3)
    with pytest.raises(JointError, match=r"Stopped.inner must be a Both, not a Revol"):
        Stopped(inner=Revolute(axis=(0, 0, 1)), stop=1.0)
    with pytest.raises(JointError, match=r"CircleTrack.radius must be a number, not a"):
        CircleTrack(radius=NESTED)


def test_joints_are_not_nested_without_end():
    joint: Joint = Revolute(axis=(0, 0, 1))
    for _ in range(7):
        joint = Both(first=joint)
    with pytest.raises(JointError, match="more than 8 joints in each other"):
        Both(first=joint)
