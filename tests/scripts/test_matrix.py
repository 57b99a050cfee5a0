"""Matrices and vectors of scripts: what each operation does, on floats and traced."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from armillary.errors import ScriptError
from armillary.scripts.host_modules import sasa, sass, sssa
from armillary.scripts.matrix import ScriptMatrix
from armillary.scripts.vector import ScriptVector
from armillary.spatial.pose import Pose
from armillary.trace import trace

V, M = ScriptVector, ScriptMatrix
ANGLES = np.random.default_rng(0).uniform(-179, 179, (200, 3))
RIGHT = [(x, y, z) for x in (0, 30) for y in (-90, 0, 90, 180) for z in (0, 45, -90)]


def array(m: ScriptMatrix) -> np.ndarray:
    return m.pose().matrix()


def turned(*steps: tuple[str, float]) -> np.ndarray:
    """The product of rotations about axes by degrees."""
    X = Pose.identity()
    for axis, angle in steps:
        X = X @ getattr(Pose, f"rotation_{axis}")(math.radians(angle))
    return X.matrix()


def some() -> ScriptMatrix:
    m = M()
    m.setWPR(10, 20, 30)
    m.P = V(1, 2, 3)
    return m


@pytest.mark.parametrize("angles", [*ANGLES[:40], *RIGHT])
def test_wpr_is_rz_ry_rx(angles):
    w, p, r = angles
    m = some()
    m.WPR = V(w, p, r)
    assert_allclose(
        array(m)[:3, :3], turned(("z", r), ("y", p), ("x", w))[:3, :3], atol=1e-12
    )
    assert_allclose(tuple(m.P), (1, 2, 3))
    again = M()
    again.WPR = m.WPR
    assert_allclose(array(again)[:3, :3], array(m)[:3, :3], atol=1e-12)


@pytest.mark.parametrize("angles", [*ANGLES[:40], *RIGHT])
def test_euler_is_rz_ry_rz_with_z_within_a_right_angle(angles):
    x, y, z = angles
    m = M()
    m.setEuler(V(x, y, z))
    assert_allclose(array(m), turned(("z", z), ("y", y), ("z", x)), atol=1e-12)
    e = m.getEuler()
    assert -90 <= e.Z <= 90
    again = M()
    again.setEuler(e.X, e.Y, e.Z)
    assert_allclose(array(again), array(m), atol=1e-12)


def test_euler_without_tilt():
    m = M()
    m.rotateRelZ(25)
    assert_allclose(tuple(m.getEuler()), (25, 0, 0), atol=1e-12)


def test_quaternions_and_axes():
    for w, p, r in ANGLES[:20]:
        m = M()
        m.setWPR(w, p, r)
        for get, put in (
            ("getQuaternion", "setQuaternion"),
            ("getAxisAngle", "setAxisAngle"),
        ):
            again = M()
            getattr(again, put)(getattr(m, get)())
            assert_allclose(array(again), array(m), atol=1e-9)
    m.setAxisAngle(V(0, 0, 2), 90)
    assert_allclose(tuple(m.N), (0, 1, 0), atol=1e-15)
    assert M().getAxisAngle().W == 0


@pytest.mark.parametrize("axis", "XYZ")
def test_relative_and_absolute_motions(axis):
    step = turned((axis.lower(), 35))
    relative, absolute = some(), some()
    getattr(relative, f"rotateRel{axis}")(35)
    getattr(absolute, f"rotateAbs{axis}")(35)
    start = some()
    start.P = V(1000, 2000, 3000)  # 1, 2, 3 in metres
    for m, expected in (
        (relative, array(some()) @ step),
        (absolute, step @ array(some())),
    ):
        assert_allclose(array(m), expected, atol=1e-12)
    about = V(*(float(axis == each) for each in "XYZ"))
    for name, m in (("rotateRelV", relative), ("rotateAbsV", absolute)):
        other = some()
        getattr(other, name)(about, 35)
        assert_allclose(array(other), array(m), atol=1e-12)


def test_translations():
    m = some()
    m.translateRel(100, 0, 0)
    assert_allclose(tuple(m.P), np.array([1, 2, 3]) + 100 * np.array(tuple(some().N)))
    m = some()
    m.translateAbs(V(100, 0, 0))
    assert_allclose(tuple(m.P), (101, 2, 3))


def test_products_inverses_and_equality():
    a, b = some(), some()
    b.rotateRelX(50)
    assert_allclose(array(a * b), array(a) @ array(b), atol=1e-15)
    p = a * V(4, 5, 6)
    assert_allclose(tuple(p), (array(a) @ [0.004, 0.005, 0.006, 1])[:3] * 1000)
    inverse = M(a)
    inverse.invert()
    assert_allclose(array(inverse), np.linalg.inv(array(a)), atol=1e-12)
    assert a == some()
    assert a != b
    assert a != None  # noqa: E711  as scripts write it
    stretched = some()
    stretched.N = stretched.N * 3
    expected = np.linalg.inv(array(stretched))
    stretched.invert()
    assert_allclose(array(stretched), expected, atol=1e-12)
    flat = some()
    flat.N = flat.O
    with pytest.raises(ScriptError, match="lie in a plane"):
        flat.invert()
    flat.identity()
    assert flat == M()


def test_uniform_restores_right_angles():
    m = some()
    m.N, m.A = m.N * 1.1 + m.O * 0.01, m.A * 2
    a = m.A
    m.uniform()
    R = array(m)[:3, :3]
    assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) > 0
    assert_allclose(tuple(m.A * 2), tuple(a))


def test_getters_return_copies():
    m = some()
    m.P.X = 99
    m.N.X = 99
    m.WPR.X = 99
    assert m == some()
    v = V(1, 2, 3)
    m.P = v
    v.X = 99
    assert m.P.X == 1
    copy = M(m)
    copy.rotateRelX(10)
    assert m != copy


def test_vectors():
    a, b = V(1, 2, 3), V(4, 5, 6)
    assert tuple(a + b) == (5, 7, 9)
    assert tuple(a - b) == (-3, -3, -3)
    assert a * b == 32
    assert tuple(2 * a) == tuple(a * 2.0) == (2, 4, 6)
    assert tuple(-a) == (-1, -2, -3)
    assert tuple(a / 2) == (0.5, 1, 1.5)
    assert tuple(a ^ b) == (-3, 6, -3)
    assert a.square() == 14
    assert a.length() == math.sqrt(14)
    assert V(1, 0, 0).angle(V(0, 2, 0)) == pytest.approx(math.pi / 2)
    before = a
    a += b
    assert tuple(before) == (1, 2, 3)
    nothing = V()
    nothing.normalize()
    assert tuple(nothing) == (0, 0, 0)
    a.normalize()
    assert a.length() == pytest.approx(1)
    assert V(1, 2, 3, 4).W == 4
    assert V(b) == b
    with pytest.raises(ScriptError, match="takes a vector, 3 numbers or 4"):
        V(1, 2)
    with pytest.raises(TypeError):
        _ = a + 1


def test_triangles():
    assert sasa(3, math.pi / 2, 4) == pytest.approx(math.atan(3 / 4))
    assert sass(3, math.pi / 2, 4) == 5
    assert sssa(5, 3, 4) == pytest.approx(math.pi / 2)
    assert sssa(9, 3, 4) == math.pi  # no triangle: the nearest angle
    assert sssa(1, 3, 9) == 0
    assert sssa(2, 2, 0) == math.pi / 2  # the limit of a flat one


def test_traced_numbers_pass_through():
    def path(q):
        m = M()
        m.rotateRelZ(q)
        m.translateRel(100, q, 0)
        m.WPR = m.WPR
        m.setEuler(m.getEuler())
        n = M(m)
        n.invert()
        n.uniform()
        m.uniform()
        v = m.P ^ n.P
        v.normalize()
        return [
            *v,
            m.N.angle(n.N),
            sssa(q, 40, 50),
            sass(30, q, 40),
            *n.getQuaternion(),
        ]

    program = trace(path, q=())
    from armillary.kernel import vectorize

    for q in (10.0, 33.0, 70.0):
        assert_allclose(
            vectorize(program, np.array(q)), [float(x) for x in path(q)], atol=1e-12
        )
