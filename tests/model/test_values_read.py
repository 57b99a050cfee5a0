"""A constant that a pose reads and that changes later is seen by new cells."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.model.values_read import values_read
from work import lines

RADIUS = 2.0
TABLE = [1.0, 2.0]
ARRAY = np.array([0.5, 0.25])


class Config:
    RATIO = 3.0
    UNREAD = 1.0


CONFIG = types.SimpleNamespace(offset=0.0)
SETTINGS = {"lift": 0.0}


def helped(q):
    return q * RADIUS


class Reading(arm.Joint):
    """Reads all kinds of things besides its parameters."""

    unit = arm.OTHER
    STEP = 1.0

    @property
    def factor(self):
        return Config.RATIO

    def pose(self, q):
        x = helped(q) * self.factor + TABLE[0] + CONFIG.offset
        return arm.Pose.translation(x, q * ARRAY[1] * self.STEP, SETTINGS["lift"])


def cell_of(joint: Any) -> arm.Cell:
    links = (arm.Link(name="a"), arm.Link(name="b", parent="a", joint=joint))
    return arm.Cell(manipulators=(arm.Manipulator(name="m", links=links),))


CHANGES = {
    "global of a function that is called": lambda p: p.setitem(
        globals(), "RADIUS", 7.0
    ),
    "list in place": lambda p: TABLE.__setitem__(0, 3.0),
    "array in place": lambda p: ARRAY.__setitem__(1, 3.0),
    "attribute of a class": lambda p: p.setattr(Config, "RATIO", -1.0),
    "attribute of an object": lambda p: p.setattr(CONFIG, "offset", 9.0),
    "value of a dict": lambda p: p.setitem(SETTINGS, "lift", 2.0),
    "constant of the joint's class": lambda p: p.setattr(Reading, "STEP", 4.0),
    "function": lambda p: p.setitem(globals(), "helped", lambda q: q * q),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_new_cell_sees_what_has_changed(change, monkeypatch: pytest.MonkeyPatch):
    before = Reading().motion
    assert Reading().motion is before
    with monkeypatch.context() as patch:
        change(patch)
        joint = Reading()
        wanted = joint.pose(1.5).position
        assert wanted != before.pose(1.5).position
        assert cell_of(joint).fk("b")([1.5])[:3, 3] == pytest.approx(wanted)
        assert joint.transform(1.5).position == pytest.approx(wanted)
        assert joint.origin_bound(1.5, 1.5) == pytest.approx(np.linalg.norm(wanted))
    TABLE[0], ARRAY[1] = 1.0, 0.25
    assert Reading().motion is before


def test_what_is_not_read_makes_no_other_motion(monkeypatch: pytest.MonkeyPatch):
    before = Reading().motion
    monkeypatch.setattr(Config, "UNREAD", 5.0)
    assert Reading().motion is before


@dataclasses.dataclass(slots=True)
class Slotted:
    by: float = 1.0


class Callable:
    def __init__(self, by):
        self.by = by

    def __call__(self, q):
        return self.by * q

    def __mul__(self, q):
        return self.by * q


class Inherited(Callable):
    by = 1.0

    def times(self, q):
        return RADIUS * q


class Inheriting(Inherited):
    pass


class Product:
    def __init__(self, q):
        self.value = RADIUS * q


class Slide(arm.Joint):
    unit = arm.OTHER

    def pose(self, q):
        return arm.Pose.translation(RADIUS * q, 0, 0)


@functools.lru_cache
def cached(x):
    return x * RADIUS


def multiplied(q, by):
    return RADIUS * q * by


def deep(calls):
    """Return what a chain of functions, each of which calls the next, returns."""
    space = {"last": helped}
    exec("def f0(q): return last(q)", space)
    for k in range(1, calls):
        exec(f"def f{k}(q): return f{k - 1}(q)", space)
    return space[f"f{calls - 1}"]


SLOTTED, OPERATOR, INHERITING, SLIDE = (
    Slotted(),
    Callable(1.0),
    Inheriting(1.0),
    Slide(),
)
PARTIAL, CHAIN = functools.partial(multiplied, by=1.0), deep(20)
FIRST, SECOND = [1.0], [5.0]
ALIAS = FIRST


def to(owner: Any, name: str, value: Any) -> Any:
    return lambda patch: patch.setattr(owner, name, value)


def new_global(name: str, value: Any) -> Any:
    return lambda patch: patch.setitem(globals(), name, value)


def new_radius(patch: pytest.MonkeyPatch) -> None:
    cached.cache_clear()
    patch.setitem(globals(), "RADIUS", 9.0)


WAYS = {
    "slots": (lambda q: SLOTTED.by * q, to(SLOTTED, "by", 3.0)),
    "object that is called": (
        lambda q: OPERATOR(q),  # noqa: PLW0108
        new_global("OPERATOR", Callable(3.0)),
    ),
    "operator": (lambda q: OPERATOR * q, to(OPERATOR, "by", 3.0)),
    "name in a text": (lambda q: getattr(OPERATOR, "by") * q, to(OPERATOR, "by", 3.0)),  # noqa: B009
    "globals()": (lambda q: globals()["RADIUS"] * q, new_radius),
    "inherited method": (INHERITING.times, new_radius),
    "inherited attribute": (lambda q: Inheriting.by * q, to(Inherited, "by", 3.0)),
    "constructor": (lambda q: Product(q).value, new_radius),
    "pose of another joint": (lambda q: SLIDE.transform(q).position[0], new_radius),
    "partial": (lambda q: 1.0 * PARTIAL(q), new_radius),
    "cached function": (lambda q: cached(1.0) * q, new_radius),
    "chain of calls": (CHAIN, new_radius),
    "two names of one list": (
        lambda q: FIRST[0] * q + SECOND[0] * q + ALIAS[0] * q,
        new_global("ALIAS", SECOND),
    ),
}


@pytest.mark.parametrize(("x", "change"), WAYS.values(), ids=WAYS)
def test_code_that_is_reached_in_any_way_is_read(
    x, change, monkeypatch: pytest.MonkeyPatch
):
    class Along(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            return arm.Pose.translation(x(q), 0, 0)

    before = Along().motion
    assert Along().motion is before
    with monkeypatch.context() as patch:
        change(patch)
        wanted = x(2.0)
        assert wanted != before.pose(2.0).position[0]
        assert Along().transform(2.0).position[0] == wanted
    cached.cache_clear()
    assert Along().motion is before


def test_a_deque_is_read():
    queue = collections.deque([1.0])

    class Along(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            return arm.Pose.translation(queue[0] * q, 0, 0)

    assert Along().transform(2.0).position[0] == 2.0
    queue.appendleft(3.0)
    assert Along().transform(2.0).position[0] == 6.0


def test_a_method_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch):
    assert Slide().transform(1.5).position[0] == 3.0
    monkeypatch.setattr(Slide, "pose", lambda self, q: arm.Pose.translation(-q, 0, 0))
    assert Slide().transform(1.5).position[0] == -1.5
    assert cell_of(Slide()).fk("b")([1.5])[0, 3] == -1.5


def test_closures_and_defaults_are_read():
    def made(height):
        class Local(arm.Joint):
            unit = arm.OTHER

            def pose(self, q, depth=[0.0]):  # noqa: B006
                return arm.Pose.translation(q, depth[0], height[0])

        return Local, height

    kind, height = made([1.0])
    first = kind().motion
    height[0] = 4.0
    assert kind().motion is not first
    assert kind().motion.pose(0.0).position == (0.0, 0.0, 4.0)
    kind.pose.__defaults__[0][0] = 2.0
    assert kind().motion.pose(0.0).position == (0.0, 2.0, 4.0)


def test_an_object_of_a_library_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    class Measured(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            return arm.Pose.translation(q, float(SETTINGS["lift"](0.5)), 0)

    monkeypatch.setitem(SETTINGS, "lift", np.poly1d([1.0, 0.0]))
    first = Measured().motion
    assert Measured().motion is first
    monkeypatch.setitem(SETTINGS, "lift", np.poly1d([3.0, 0.0]))
    assert Measured().motion.pose(0.0).position[1] == 1.5


def test_the_sign_of_a_zero_is_read(monkeypatch: pytest.MonkeyPatch):
    class Signed(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            return arm.Pose.translation(q, np.copysign(1.0, SETTINGS["lift"]), 0)

    positive = Signed().motion
    monkeypatch.setitem(SETTINGS, "lift", -0.0)
    assert Signed().motion is not positive
    assert Signed().motion.pose(0.0).position[1] == -1.0


class Direction(arm.Joint):
    """Parameters have no -0.0: equal joints move equally."""

    y: float
    unit = arm.OTHER

    def pose(self, q):
        return arm.Pose.translation(
            q, np.arctan2(self.y, -1.0), np.copysign(1.0, self.y)
        )


def test_a_parameter_has_one_zero():
    for joint in (
        Direction(y=-0.0),
        Direction(y=0.0),
        Direction(y=0.0).replace(y=-0.0),
    ):
        assert np.copysign(1.0, joint.y) == 1.0
        assert joint.pose(0.0).position == joint.transform(0.0).position
        assert joint.transform(0.0).position == pytest.approx((0.0, np.pi, 1.0))


def test_nothing_is_looked_up_for_built_in_joints():
    assert values_read(arm.joints.Revolute(axis=(0.0, 0.0, 1.0))) == ()


def test_a_helper_that_calls_itself_is_read_once():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    class Recursive(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            return arm.Pose.translation(q, float(even(4)), 0)

    assert Recursive().motion is Recursive().motion


def test_what_has_not_changed_is_read_again_at_little_cost(
    monkeypatch: pytest.MonkeyPatch,
):
    joint = Reading()
    first = lines(lambda: values_read(joint))
    key = values_read(joint)
    assert lines(lambda: values_read(joint)) < min(first, 250)
    assert values_read(joint) is not key  # a tuple, of the same parts
    assert values_read(joint)[0] is key[0]
    monkeypatch.setitem(SETTINGS, "lift", float("0.0"))  # another object, equal
    assert values_read(joint) == key
    monkeypatch.setitem(SETTINGS, "lift", 1.0)
    assert values_read(joint) != key


def test_objects_and_arrays_of_objects_are_watched():
    parts = np.array([[1.0, [2.0]]], dtype=object)
    counter = types.SimpleNamespace(inner=Config())

    class Watched(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            scale = parts[0, 0] + parts[0, 1][0] + getattr(counter.inner, "RATIO", 0.0)
            return arm.Pose.translation(scale * q, 0.0, 0.0)

    keys = [values_read(Watched())]
    parts[0, 1][0] = 3.0
    keys.append(values_read(Watched()))
    parts[0, 0] = 7.0
    keys.append(values_read(Watched()))
    counter.inner.RATIO = 9.0
    keys.append(values_read(Watched()))
    assert len(set(keys)) == 4
    assert values_read(Watched()) == keys[-1]
