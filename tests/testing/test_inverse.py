"""The check of closed forms passes what is right, and names what is broken."""

from __future__ import annotations

import math

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, ClosedForm, Link, Manipulator, Pose
from armillary.errors import ModelError
from armillary.ik.reason import Reason
from armillary.model.limits import Limits
from armillary.testing import check_inverse

A, B, C = 1.0, 0.7, 0.2


class Planar(ClosedForm):
    """Three parallel axes, in functions that can be traced."""

    branches = ("left", "right")

    def forward(self, q):
        lengths = (A, B, C)
        X = Pose.identity()
        for angle, length in zip(q, lengths, strict=True):
            X = X @ Pose.rotation_z(angle) @ Pose.translation(length, 0, 0)
        return X

    def inverse(self, pose):
        (c, _, _), (s, _, _), _ = pose.rotation
        x, y = pose.position[0] - C * c, pose.position[1] - C * s
        cosine = (x * x + y * y - A * A - B * B) / (2 * A * B)
        if abs(cosine) > 1:
            return None
        return [
            self.branch(x, y, np.arctan2(s, c), sign * np.arccos(cosine))
            for sign in (1, -1)
        ]

    def branch(self, x, y, total, q1):
        q0 = np.arctan2(y, x) - np.arctan2(B * np.sin(q1), A + B * np.cos(q1))
        return q0, q1, total - q0 - q1


class Plain(Planar):
    """The same in functions that ask for floats."""

    def inverse(self, pose):
        (c, _, _), (s, _, _), _ = pose.rotation
        x, y = pose.position[0] - C * c, pose.position[1] - C * s
        cosine = (x * x + y * y - A * A - B * B) / (2 * A * B)
        if not abs(cosine) <= 1:
            return None, None
        q1 = math.acos(cosine)
        return [self.branch(x, y, math.atan2(s, c), turn) for turn in (q1, -q1)]


def cell(limit: float = 3.1) -> Cell:
    """Return the model of the same arm, on a rail that stays at home."""
    limits = Limits(lower=-limit, upper=limit)
    links = [Link(name="base")]
    links.append(Link(name="rail", parent="base", joint=arm.joints.Prismatic()))
    reach = [0.0, A, B]
    for k in range(3):
        joint = arm.joints.Revolute(precursor=Pose.translation(reach[k], 0, 0))
        name = links[-1].name
        links.append(Link(name=f"l{k}", parent=name, joint=joint, limits=limits))
    tip = arm.joints.Fixed(precursor=Pose.translation(C, 0, 0))
    links.append(Link(name="tip", parent="l2", joint=tip))
    return Cell(manipulators=(Manipulator(name="planar", links=tuple(links)),))


JOINTS = ["l0", "l1", "l2"]
ENDS = {"lower": [-2.5] * 3, "upper": [2.5] * 3}


@pytest.mark.parametrize("form", [Planar(), Plain()])
def test_good_forms_pass(form: ClosedForm) -> None:
    check_inverse(form, **ENDS)
    check_inverse(form, cell=cell(), frame="tip", joints=JOINTS)


class OneBranch(Planar):
    def inverse(self, pose):
        found = super().inverse(pose)
        return None if found is None else [found[0], None]


class Twice(Planar):
    def inverse(self, pose):
        found = super().inverse(pose)
        return None if found is None else [found[0], found[0]]


class Wrong(Planar):
    def inverse(self, pose):
        found = super().inverse(pose)
        return None if found is None else [found[0], (1.0, 1.0, 1.0)]


class Swapped(Planar):
    def inverse(self, pose):
        found = super().inverse(pose)
        if found is None:
            return None
        swap = int(pose.position[0] * 1e7) % 2
        return [found[swap], found[1 - swap]]


class Everywhere(Planar):
    def inverse(self, pose):
        return super().inverse(pose) or [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)]


class Short(Planar):
    def inverse(self, pose):
        return [(0.0, 0.0, 0.0)]


class Narrow(Planar):
    def inverse(self, pose):
        return [(0.0, 0.0), None]


class Longer(Planar):
    def forward(self, q):
        return super().forward(q) @ Pose.translation(0.1, 0, 0)


class NoPose(Planar):
    def forward(self, q):
        return 3


@pytest.mark.parametrize(
    ("form", "law"),
    [
        (OneBranch(), "inverse contains q"),
        (Twice(), "branches differ"),
        (Wrong(), "every branch leads to the target: the branch 'right'"),
        (Swapped(), "branches keep their names"),
        (Everywhere(), "out of reach there is nothing"),
        (Short(), "returned 1 branches; its branches are left, right"),
        (Narrow(), "2 numbers for the branch 'left'; 3 joints"),
        (Longer(), "forward is that of the model"),
        (NoPose(), "forward returned int, not a Pose"),
        (ClosedForm(), "ClosedForm has no forward"),
    ],
)
def test_broken_laws_are_named(form: ClosedForm, law: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_inverse(form, cell=cell(), frame="tip", joints=JOINTS)
    assert law in str(caught.value)


def test_what_is_missing_is_reported() -> None:
    with pytest.raises(ModelError, match="lower and upper, or a cell"):
        check_inverse(Planar())
    with pytest.raises(ModelError, match="frame="):
        check_inverse(Planar(), cell=cell(), joints=JOINTS)


@pytest.mark.parametrize("form", [Planar(), Plain()])
def test_a_form_answers_for_the_cell(form: ClosedForm) -> None:
    model = cell()
    ik = model.ik("tip", joints=JOINTS, closed=form)
    assert ik.closed is not None
    assert ik.closed.compiled == (type(form) is Planar)
    assert ("float" in ik.closed.why_not_compiled) == (type(form) is Plain)
    assert ik.closed.branches == (("left",), ("right",))
    q = np.random.default_rng(0).uniform(-2.5, 2.5, (40, 3))
    X = model.fk("tip", joints=JOINTS)(q)
    answer = ik(X, near=q)
    assert answer.success.all()
    assert np.abs(answer.q - q).max() < 1e-9
    every = ik.all(X.reshape(4, 10, 4, 4))
    assert every.q.shape == (4, 10, 2, 3)
    assert every.branches == (("left",), ("right",))
    assert every.complete.all()
    found = every.q[every.success]
    assert (np.abs(found) <= 3.1).all()
    assert every.success.any(axis=-1).all()
    again = model.fk("tip", joints=JOINTS)(every.q)[every.success]
    wanted = np.broadcast_to(X.reshape(4, 10, 1, 4, 4), (4, 10, 2, 4, 4))
    assert np.abs(again - wanted[every.success]).max() < 1e-9
    assert ik(X[0]).q.shape == (3,)
    assert ik(X[:0]).q.shape == (0, 3)
    assert model.ik("tip", joints=JOINTS, closed=form) is ik
    assert model.ik("tip", joints=JOINTS) is not ik


@pytest.mark.parametrize("form", [Planar(), Plain()])
def test_reasons_of_a_form(form: ClosedForm) -> None:
    model = cell(1.0)
    ik = model.ik("tip", joints=JOINTS, closed=form)
    X = model.fk("tip", joints=JOINTS)(
        [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 0], [2, 0.5, 0], [0.1, 0.2, 0.3]]
    )
    X[1, 0, 3], X[2, 1, 1] = 9.0, np.nan
    X[4, 2, 3] = 0.4  # above the plane: the formula says yes, the model no
    answer = ik(X)
    wanted = [Reason.SOLVED, Reason.OUT_OF_REACH, Reason.INVALID_TARGET, Reason.LIMITS]
    assert answer.reason[:4].tolist() == wanted
    assert answer.reason[4] in {Reason.NOT_FOUND, Reason.OUT_OF_REACH}
    assert (np.abs(answer.q[[0, 1, 3]]) <= 1.0).all()
    assert np.isnan(answer.q[2]).all()
    assert answer.residual[1, 0] > 5.0


@pytest.mark.parametrize("form", [None, Planar(), Plain()])
def test_targets_of_a_form_are_sheared_by_no_more_than_rounding(form) -> None:
    model = cell()
    q = np.array([0.3, 0.4, 0.5])
    for shear, reason in ((1e-7, Reason.SOLVED), (1e-5, Reason.INVALID_TARGET)):
        X = model.fk("tip", joints=JOINTS)(q)
        X[:3, 0] += shear * X[:3, 1]
        answer = model.ik("tip", joints=JOINTS, closed=form)(X, near=q)
        assert answer.reason == reason


def test_what_the_users_code_raises_is_reported() -> None:
    class Careless(Planar):
        def inverse(self, pose):
            return [(math.acos(2.0), 0.0, 0.0), None]

    ik = cell().ik("tip", joints=JOINTS, closed=Careless())
    with pytest.raises(ModelError, match=r"Careless\.inverse raised ValueError"):
        ik(np.eye(4))
    with pytest.raises(ModelError, match="one frame, with its full pose"):
        cell().ik("tip", joints=JOINTS, rotation="", closed=Planar())
    with pytest.raises(ModelError, match="no arm angle"):
        cell().ik("tip", joints=JOINTS, closed=Planar())(np.eye(4), arm_angle=0.0)


def test_branches_beyond_limits_stay_near() -> None:
    model = cell(1.0)
    ik = model.ik("tip", joints=JOINTS, closed=Planar())
    q = np.array([[-1.5, 0.5, 0.3], [1.5, 0.5, -0.3], [0.2, 0.5, 1.2]])
    every = ik.all(model.fk("tip", joints=JOINTS)(q))
    assert every.reason[:, 0].tolist() == [Reason.LIMITS] * 3
    np.testing.assert_allclose(every.q[:, 0], q, atol=1e-12)
    far = ik.all(model.fk("tip", joints=JOINTS)(q), near=[9.0, -9.0, 9.0])
    assert (np.abs(far.q[:, 0] - [1.0, -1.0, 1.0]) <= np.pi).all()


def test_a_form_answers_at_limits_as_far_as_the_tolerance() -> None:
    model = cell(1.0)
    ik = model.ik("tip", joints=JOINTS, closed=Planar())
    fk = model.fk("tip", joints=JOINTS)
    for beyond, reason in ((1e-8, Reason.SOLVED), (1e-4, Reason.LIMITS)):
        answer = ik(fk([1.0 + beyond, 0.5, 0.3]), near=[1.0, 0.5, 0.3])
        assert answer.reason == reason
        assert answer.q.max() <= 1.0
        assert (answer.residual.max() > 0.5 * beyond) and answer.residual.max() < 1e-3


@pytest.mark.parametrize("tolerance", [(1e-6, 1e-6), (1e-3, 1e-2)])
def test_a_form_answers_at_limits_as_a_recognised_one(tolerance) -> None:
    """What its branches miss there by little, a search from `near` finds."""
    model = cell(1.0)
    fk = model.fk("tip", joints=JOINTS)
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.0, 1.0, (400, 3))
    q[np.arange(400), rng.integers(3, size=400)] = rng.choice([-1.0, 1.0], 400)
    X = fk(q + 1e-3 * rng.normal(size=q.shape))
    mine, known = (
        model.ik("tip", joints=JOINTS, closed=form)(X, near=q, tolerance=tolerance)
        for form in (Planar(), None)
    )
    np.testing.assert_array_equal(mine.reason, known.reason)
    np.testing.assert_allclose(mine.q, known.q, atol=1e-9)


def test_a_search_goes_on_from_the_branches_of_a_form_that_is_a_little_off() -> None:
    class Nominal(Planar):
        def branch(self, x, y, total, q1):
            q0, q1, q2 = super().branch(x, y, total, q1)
            return q0 + 1e-3, q1 - 2e-3, q2

    model = cell()
    q = np.random.default_rng(0).uniform([-1.0, 0.3, -1.0], 1.0, (100, 3))
    X = model.fk("tip", joints=JOINTS)(q)
    nominal = model.ik("tip", joints=JOINTS, closed=Nominal())(X)
    exact = model.ik("tip", joints=JOINTS, closed=Planar())(X)
    assert nominal.success.all()
    np.testing.assert_allclose(nominal.q, exact.q, atol=1e-4)
    assert nominal.starts.max() == 1
    assert not exact.starts.any()


@pytest.mark.parametrize("method", ["closed", "numeric"])
@pytest.mark.parametrize("form", [None, Planar(), Plain()])
def test_a_matrix_that_is_not_a_finite_pose_is_invalid_for_all(form, method) -> None:
    model = cell()
    X = np.tile(model.fk("tip", joints=JOINTS)([0.3, 0.4, 0.5]), (4, 1, 1))
    X[1, 3, 0], X[2, 3, 3], X[3, 0, 3] = 0.1, 2.0, np.inf
    reason = model.ik("tip", joints=JOINTS, closed=form)(X, method=method).reason
    assert reason.tolist() == [Reason.SOLVED, *[Reason.INVALID_TARGET] * 3]
