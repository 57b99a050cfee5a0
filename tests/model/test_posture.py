"""Postures, the home posture and properties: what they must be, and what they do."""

from __future__ import annotations

import pickle

import pytest

from armillary import Cell, Coupling, Frame, Link, Manipulator
from armillary.errors import ModelError, UnknownName
from armillary.model.joints import Prismatic, Revolute
from armillary.model.limits import Limits
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import Workcell

LINKS = (
    Link(name="base"),
    Link(name="a", parent="base", joint=Revolute(), limits=Limits(lower=0.5)),
    Link(name="b", parent="a", joint=Prismatic(), passive=True),
    Link(name="c", parent="b", joint=Revolute(), coupling=Coupling(of="a")),
    Link(name="d", parent="c", frames=(Frame(name="tip"),)),
)
HOME = Posture(name="home", joints=("b", "a"), q=(2, 1))


def arm(**fields: object) -> Manipulator:
    return Manipulator(name="arm", links=LINKS, **fields)  # type: ignore[arg-type]


def test_cell_starts_in_the_home_posture():
    two = Cell(
        manipulators=(
            Manipulator(name="other", links=LINKS),
            arm(postures=(HOME,), home="home"),
        )
    )
    assert two.home.q.tolist() == [0.5, 0.0, 1.0, 2.0]


def test_posture_alone_changes_nothing():
    assert Cell(manipulators=(arm(postures=(HOME,)),)).home.q.tolist() == [0.5, 0.0]


def test_home_posture_may_leave_joints_out():
    half = Posture(name="half", joints=("b",), q=(3.0,))
    cell = Cell(manipulators=(arm(postures=(half,), home="half"),))
    assert cell.home.q.tolist() == [0.5, 3.0]


def test_passive_joint_has_a_place_in_q():
    assert arm().joint_names == ("a", "b")


def test_posture_is_found_by_name():
    assert arm(postures=(HOME,)).posture("home") == HOME
    with pytest.raises(UnknownName, match=r"no posture named 'hom'.*mean 'home'"):
        arm(postures=(HOME,)).posture("hom")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"postures": (HOME, HOME)}, "Two postures are called 'home'"),
        ({"home": "rest"}, "No posture is called 'rest'"),
        (
            {"postures": (Posture(name="x", joints=("c",), q=(0,)),)},
            "'c', which has no place in q",
        ),
        ({"properties": (Property(name="p", of="tup"),)}, "'tup', which is not a link"),
    ],
)
def test_faults_are_reported(fields: dict[str, object], text: str):
    with pytest.raises(ModelError, match=text):
        arm(**fields)


@pytest.mark.parametrize(
    ("joints", "q", "text"),
    [
        (("a",), (), "0 positions for 1 joint"),
        (("a", "a"), (1, 2), "names a joint twice"),
        (("a",), (float("nan"),), "not finite"),
    ],
)
def test_postures_are_checked(joints: tuple[str, ...], q: tuple[float, ...], text: str):
    with pytest.raises(ModelError, match=text):
        Posture(name="p", joints=joints, q=q)


def test_properties_are_checked():
    with pytest.raises(ModelError, match="no name"):
        Property(name="")
    with pytest.raises(ModelError, match="not finite"):
        Property(name="p", numbers=(float("inf"),))
    with pytest.raises(UnknownName, match="no frame named 'nowhere'"):
        Workcell(properties=(Property(name="p", of="nowhere"),))


def test_properties_may_be_about_frames():
    cell = Workcell(
        manipulators=(arm(properties=(Property(name="p", of="tip", text="x"),)),),
        properties=(Property(name="q", of="arm/tip", numbers=(1,)),),
    )
    assert cell.properties[0].numbers == (1.0,)


def test_cells_keep_all_of_it():
    cell = Workcell(
        manipulators=(
            arm(postures=(HOME,), home="home", properties=(Property(name="p"),)),
        ),
        properties=(Property(name="q"),),
    )
    assert pickle.loads(pickle.dumps(cell)) == cell
    assert Cell.of(cell).manipulators == cell.manipulators
    assert Cell.of(cell).properties == cell.properties
    assert hash(cell) == hash(pickle.loads(pickle.dumps(cell)))


def test_what_is_not_a_number_is_refused():
    with pytest.raises(ModelError, match="'lower' is 'a'; it takes a number"):
        Limits(lower="a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="Posture 'up' takes numbers"):
        Posture(name="up", joints=("j",), q=("x",))  # pyright: ignore[reportArgumentType]
