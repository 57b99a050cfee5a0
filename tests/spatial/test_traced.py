"""Laws of every function here: traced it computes what it computes on floats.

The table names each public function of the layer once; a new one that is missing here
fails the first test.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import armillary.spatial
from armillary.spatial import (
    dh,
    dual_quaternion,
    euler,
    ldl,
    lu,
    polynomial,
    twist,
    vector,
)
from armillary.spatial import quaternion as quat
from armillary.spatial import rotation as rot
from armillary.spatial.articulated import ArticulatedInertia
from armillary.spatial.inertia import SpatialInertia, VelocityInertia
from armillary.spatial.pose import Pose, pose_from, pose_of_entries
from armillary.trace import evaluate, jvp, trace
from programs import verify

FLOATS_ONLY = {
    "vector.number",
    "polynomial.derivative",
    "polynomial.differentiation",
    "pose.matrices_of",
    "pose.pose_of_matrix",
    "vector.are_floats",
    "vector.snap",
    "rotation.nearest_rotation",
    "inertia.SpatialInertia.fault",
    "inertia.SpatialInertia.point_mass",
    "inertia.SpatialInertia.is_float",
    "inertia.SpatialInertia.zero",
    "pose.Pose.identity",
    "pose.Pose.normalised",
    "pose.Pose.is_float",
    "pose.Pose.is_identity",
}


def unit4(q: Any) -> quat.Quaternion:
    return quat.normalised((q[0] + 2.0, q[1], q[2], q[3]))


def pose6(x: Any) -> Pose:
    return Pose(rot.exp(tuple(x[3:6])), tuple(x[:3]))


def dual6(x: Any) -> dual_quaternion.DualQuaternion:
    return dual_quaternion.from_pose(pose6(x))


def inertia10(x: Any) -> SpatialInertia:
    return SpatialInertia.from_second_moment(2.0 + x[0], x[1:4], x[4:10])


def symmetric(x: Any) -> list[list[Any]]:
    a, b, c = x
    return [[a * a + b * b + 1.0, b], [b, c * c + 1.0 + b * b]]


def factor(x: Any) -> ldl.LDLFactor:
    return ldl.LDLFactor.of(symmetric(x), 1e-12)


def exchanging(x: Any) -> ldl.Rows:
    """A matrix whose rows are exchanged: the first pivot is 0, the second small."""
    a, b, c, d = x
    return [[0.0, a + 3.0, b], [c + 0.1, d, 2.0], [4.0 + a, 1.0, c * d]]


def flat6(x: Any) -> twist.Vector6:
    return tuple(x[:6])


def velocity_inertia16(x: Any) -> VelocityInertia:
    return VelocityInertia.of(inertia10(x[:10]), flat6(x[10:16]))


def articulated10(x: Any) -> ArticulatedInertia:
    return ArticulatedInertia.of(inertia10(x))


# Name: size of the input, and the function of a tuple of that many numbers.
TABLE: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "vector.vector": (3, vector.vector),
    "vector.three": (3, lambda x: vector.three(list(x))),
    "vector.without_negative_zeros": (
        3,
        lambda x: vector.without_negative_zeros((x[0], -x[0] * 0.0, x[2])),
    ),
    "vector.rows": (9, lambda x: vector.rows([x[:3], x[3:6], x[6:]])),
    "vector.add": (6, lambda x: vector.add(x[:3], x[3:])),
    "vector.subtract": (6, lambda x: vector.subtract(x[:3], x[3:])),
    "vector.negate": (3, vector.negate),
    "vector.scale": (4, lambda x: vector.scale(x[3], x[:3])),
    "vector.dot": (6, lambda x: vector.dot(x[:3], x[3:])),
    "vector.cross": (6, lambda x: vector.cross(x[:3], x[3:])),
    "vector.norm": (3, lambda x: vector.norm((x[0], x[1], x[2] + 3.0))),
    "vector.unit": (3, lambda x: vector.unit((x[0], x[1], x[2] + 3.0))),
    "vector.transpose": (3, lambda x: vector.transpose(rot.exp(x))),
    "vector.apply": (6, lambda x: vector.apply(rot.exp(x[:3]), x[3:])),
    "vector.multiply": (
        6,
        lambda x: vector.multiply(rot.exp(x[:3]), vector.skew(x[3:])),
    ),
    "vector.add_rows": (
        6,
        lambda x: vector.add_rows(rot.exp(x[:3]), vector.skew(x[3:])),
    ),
    "vector.subtract_rows": (
        6,
        lambda x: vector.subtract_rows(rot.exp(x[:3]), vector.skew(x[3:])),
    ),
    "vector.skew": (3, vector.skew),
    "vector.determinant": (6, lambda x: vector.determinant((x[:3], x[3:], x[:3]))),
    "vector.largest": (3, lambda x: vector.largest((x[0], x[1] - 9.0, x[2]))),
    "vector.snap_rows": (3, lambda x: vector.snap_rows(vector.skew(x))),
    "vector.sine_cosine": (1, lambda x: vector.sine_cosine(x[0])),
    "rotation.c0": (1, lambda x: rot.c0(x[0] * x[0])),
    "rotation.c1": (1, lambda x: rot.c1(x[0] * x[0])),
    "rotation.c2": (1, lambda x: rot.c2(x[0] * x[0])),
    "rotation.c3": (1, lambda x: rot.c3(x[0] * x[0])),
    "rotation.inverse_coefficient": (
        1,
        lambda x: rot.inverse_coefficient(x[0] * x[0]),
    ),
    "quaternion.quaternion": (4, quat.quaternion),
    "quaternion.product": (8, lambda x: quat.product(x[:4], x[4:])),
    "quaternion.conjugate": (4, quat.conjugate),
    "quaternion.rotate": (7, lambda x: quat.rotate(unit4(x[:4]), x[4:])),
    "quaternion.inner": (8, lambda x: quat.inner(x[:4], x[4:])),
    "quaternion.normalised": (4, unit4),
    "quaternion.with_positive_w": (
        4,
        lambda x: quat.with_positive_w((x[0] - 3.0, x[1], x[2], x[3])),
    ),
    "quaternion.rows_from_quaternion": (
        4,
        lambda x: quat.rows_from_quaternion((x[0] + 2.0, x[1], x[2], x[3])),
    ),
    "quaternion.rows_from_unit_quaternion": (
        4,
        lambda x: quat.rows_from_unit_quaternion(unit4(x)),
    ),
    "quaternion.quaternion_from_rows": (
        3,
        lambda x: quat.quaternion_from_rows(rot.exp(x)),
    ),
    "rotation.about_x": (1, lambda x: rot.about_x(x[0])),
    "rotation.about_y": (1, lambda x: rot.about_y(x[0])),
    "rotation.about_z": (1, lambda x: rot.about_z(x[0])),
    "rotation.about_axis": (
        4,
        lambda x: rot.about_axis((x[0], x[1] - 3.0, x[2]), x[3]),
    ),
    "rotation.exp": (3, rot.exp),
    "rotation.log": (3, lambda x: rot.log(rot.exp(x))),
    "rotation.quaternion_exp": (3, rot.quaternion_exp),
    "rotation.quaternion_log": (4, lambda x: rot.quaternion_log(unit4(x))),
    "rotation.orthonormality_error": (
        3,
        lambda x: rot.orthonormality_error(
            ((2.0 + x[0], 0.0, 0.0), (0.0, 1.0, x[1]), (0.0, x[2], 1.0))
        ),
    ),
    "rotation.is_proper": (3, lambda x: rot.is_proper(rot.exp(x)) * 1.0),
    "euler.rows_from_moving_zyx": (3, lambda x: euler.rows_from_moving_zyx(*x)),
    "euler.rows_from_fixed_xyz": (3, lambda x: euler.rows_from_fixed_xyz(*x)),
    "euler.rows_from_moving_xyz": (3, lambda x: euler.rows_from_moving_xyz(*x)),
    "euler.moving_zyx": (3, lambda x: euler.moving_zyx(rot.exp(x))),
    "euler.fixed_xyz": (3, lambda x: euler.fixed_xyz(rot.exp(x))),
    "euler.moving_xyz": (3, lambda x: euler.moving_xyz(rot.exp(x))),
    "pose.Pose.translation": (3, lambda x: Pose.translation(*x).matrix()),
    "pose.Pose.rotation_x": (1, lambda x: Pose.rotation_x(x[0]).matrix()),
    "pose.Pose.rotation_y": (1, lambda x: Pose.rotation_y(x[0]).matrix()),
    "pose.Pose.rotation_z": (1, lambda x: Pose.rotation_z(x[0]).matrix()),
    "pose.Pose.rotation_about": (
        1,
        lambda x: Pose.rotation_about((1.0, 2.0, -2.0), x[0]).matrix(),
    ),
    "pose.Pose.from_rotation_position": (
        6,
        lambda x: Pose.from_rotation_position(rot.exp(x[:3]), x[3:]).matrix(),
    ),
    "pose.Pose.from_matrix": (6, lambda x: Pose.from_matrix(pose6(x).matrix()).entries),
    "pose.pose_from": (6, lambda x: pose_from(pose6(x).matrix()).entries),
    "pose.pose_of_entries": (12, lambda x: pose_of_entries(list(x)).entries),
    "pose.Pose.from_quaternion": (
        7,
        lambda x: Pose.from_quaternion(unit4(x[:4]), x[4:]).matrix(),
    ),
    "pose.Pose.from_rpy": (6, lambda x: Pose.from_rpy(*x[:3], x[3:]).matrix()),
    "pose.Pose.rpy": (6, lambda x: pose6(x).rpy()),
    "pose.Pose.__matmul__": (12, lambda x: (pose6(x[:6]) @ pose6(x[6:])).matrix()),
    "pose.Pose.inverse": (6, lambda x: pose6(x).inverse().matrix()),
    "pose.Pose.rotate": (9, lambda x: pose6(x[:6]).rotate(x[6:])),
    "pose.Pose.matrix": (6, lambda x: pose6(x).matrix()),
    "pose.Pose.quaternion": (6, lambda x: pose6(x).quaternion()),
    "pose.Pose.scaled": (7, lambda x: pose6(x[:6]).scaled(x[6]).matrix()),
    "pose.Pose.approx_equal": (
        6,
        lambda x: pose6(x).approx_equal(Pose.identity(), 1e-3) * 1.0,
    ),
    "pose.Pose.entries": (6, lambda x: pose6(x).entries),
    "articulated.ArticulatedInertia.__add__": (
        20,
        lambda x: tuple(articulated10(x[:10]) + articulated10(x[10:])),
    ),
    "articulated.ArticulatedInertia.apply": (
        16,
        lambda x: articulated10(x).apply(flat6(x[10:])),
    ),
    "articulated.ArticulatedInertia.less": (
        22,
        lambda x: tuple(articulated10(x).less(flat6(x[10:]), flat6(x[16:]))),
    ),
    "articulated.ArticulatedInertia.transformed": (
        16,
        lambda x: tuple(articulated10(x).transformed(pose6(x[10:]))),
    ),
    "twist.vector6": (6, twist.vector6),
    "twist.six": (6, lambda x: twist.six(list(x))),
    "twist.halves": (6, lambda x: twist.halves(flat6(x))),
    "twist.transform_twist": (
        12,
        lambda x: twist.transform_twist(pose6(x), flat6(x[6:])),
    ),
    "twist.transform_wrench": (
        12,
        lambda x: twist.transform_wrench(pose6(x), flat6(x[6:])),
    ),
    "twist.turn": (9, lambda x: twist.turn(rot.exp(x[6:]), flat6(x))),
    "twist.move_twist": (9, lambda x: twist.move_twist(flat6(x), x[6:])),
    "twist.adjoint": (6, lambda x: twist.adjoint(pose6(x))),
    "twist.coadjoint": (6, lambda x: twist.coadjoint(pose6(x))),
    "twist.inverse_transform_twist": (
        12,
        lambda x: twist.inverse_transform_twist(pose6(x[:6]), flat6(x[6:])),
    ),
    "twist.inverse_transform_wrench": (
        12,
        lambda x: twist.inverse_transform_wrench(pose6(x[:6]), flat6(x[6:])),
    ),
    "twist.cross_twist": (12, lambda x: twist.cross_twist(x[:6], x[6:])),
    "twist.cross_wrench": (12, lambda x: twist.cross_wrench(x[:6], x[6:])),
    "twist.add6": (12, lambda x: twist.add6(x[:6], x[6:])),
    "twist.scale6": (7, lambda x: twist.scale6(x[6], x[:6])),
    "twist.power": (12, lambda x: twist.power(x[:6], x[6:])),
    "twist.exp": (6, lambda x: twist.exp(flat6(x)).matrix()),
    "twist.log": (6, lambda x: twist.log(pose6(x))),
    "twist.screw": (6, lambda x: twist.screw(x[:3], x[3:])),
    "inertia.SpatialInertia.from_centre": (
        13,
        lambda x: SpatialInertia.from_centre(
            x[0], x[1:4], [x[4:7], x[7:10], x[10:]]
        ).matrix(),
    ),
    "inertia.SpatialInertia.from_parameters": (
        10,
        lambda x: SpatialInertia.from_parameters(x).matrix(),
    ),
    "inertia.SpatialInertia.parameters": (10, lambda x: inertia10(x).parameters),
    "inertia.SpatialInertia.from_second_moment": (10, lambda x: inertia10(x).matrix()),
    "inertia.VelocityInertia.__add__": (
        32,
        lambda x: tuple(velocity_inertia16(x[:16]) + velocity_inertia16(x[16:])),
    ),
    "inertia.VelocityInertia.apply": (
        22,
        lambda x: velocity_inertia16(x).apply(flat6(x[16:])),
    ),
    "inertia.VelocityInertia.apply_transposed": (
        22,
        lambda x: velocity_inertia16(x).apply_transposed(flat6(x[16:])),
    ),
    "inertia.VelocityInertia.transformed": (
        22,
        lambda x: tuple(velocity_inertia16(x).transformed(pose6(x[16:]))),
    ),
    "inertia.SpatialInertia.__add__": (
        20,
        lambda x: (inertia10(x[:10]) + inertia10(x[10:])).matrix(),
    ),
    "inertia.SpatialInertia.transformed": (
        16,
        lambda x: inertia10(x[:10]).transformed(pose6(x[10:])).matrix(),
    ),
    "inertia.SpatialInertia.scaled": (
        11,
        lambda x: inertia10(x[:10]).scaled(x[10]).matrix(),
    ),
    "inertia.SpatialInertia.apply": (16, lambda x: inertia10(x).apply(x[10:])),
    "inertia.SpatialInertia.matrix": (10, lambda x: inertia10(x).matrix()),
    "inertia.SpatialInertia.centre": (
        3,
        lambda x: SpatialInertia(2.0, x, vector.EYE).centre(),
    ),
    "inertia.SpatialInertia.about_centre": (
        3,
        lambda x: SpatialInertia(2.0, x, vector.EYE).about_centre(),
    ),
    "dual_quaternion.dual_quaternion": (8, dual_quaternion.dual_quaternion),
    "dual_quaternion.parts": (8, dual_quaternion.parts),
    "dual_quaternion.from_pose": (6, dual6),
    "dual_quaternion.to_pose": (
        8,
        lambda x: dual_quaternion.to_pose((*unit4(x[:4]), *x[4:])).matrix(),
    ),
    "dual_quaternion.product": (
        16,
        lambda x: dual_quaternion.product(x[:8], x[8:]),
    ),
    "dual_quaternion.conjugate": (8, dual_quaternion.conjugate),
    "dual_quaternion.normalised": (
        8,
        lambda x: dual_quaternion.normalised((x[0] + 3.0, *x[1:])),
    ),
    "dual_quaternion.exp": (6, lambda x: dual_quaternion.exp(flat6(x))),
    "dual_quaternion.log": (6, lambda x: dual_quaternion.log(dual6(x))),
    "dual_quaternion.screw_between": (
        12,
        lambda x: dual_quaternion.screw_between(dual6(x[:6]), dual6(x[6:])),
    ),
    "dual_quaternion.difference": (
        12,
        lambda x: dual_quaternion.difference(dual6(x[:6]), dual6(x[6:])),
    ),
    "dh.paul": (
        4,
        lambda x: dh.paul(theta=x[0], d=x[1], a=x[2], alpha=x[3]).matrix(),
    ),
    "dh.craig": (
        4,
        lambda x: dh.craig(theta=x[0], d=x[1], a=x[2], alpha=x[3]).matrix(),
    ),
    "ldl.inner": (6, lambda x: ldl.inner(x[:3], x[3:])),
    "ldl.gram": (6, lambda x: ldl.gram([list(x[:2]), list(x[2:4])], x[4:])),
    "ldl.shifted": (4, lambda x: ldl.shifted(symmetric(x[:3]), x[3])),
    "ldl.apply_rows": (6, lambda x: ldl.apply_rows(symmetric(x[:3]), x[3:5])),
    "ldl.multiply_symmetric": (
        3,
        lambda x: ldl.multiply_symmetric(symmetric(x), symmetric(x)),
    ),
    "ldl.LDLFactor.root_of_determinant": (
        3,
        lambda x: factor(x).root_of_determinant,
    ),
    "ldl.LDLFactor.solve": (5, lambda x: factor(x[:3]).solve(x[3:])),
    "polynomial.polynomial": (4, lambda x: polynomial.polynomial(x[:3], x[3])),
    "polynomial.with_derivatives": (
        5,
        lambda x: polynomial.with_derivatives(x[:4], x[4], 3),
    ),
    "lu.LU.solve": (7, lambda x: lu.LU.of(exchanging(x[:4])).solve(x[4:])),
    "lu.LU.determinant": (4, lambda x: lu.LU.of(exchanging(x)).determinant),
    "lu.LU.orientation": (4, lambda x: lu.LU.of(exchanging(x)).orientation),
    "dh.parallel": (
        4,
        lambda x: dh.parallel(alpha=x[0], a=x[1], beta=x[2], b=x[3]).matrix(),
    ),
}


def public_functions() -> Iterable[str]:
    for info in pkgutil.iter_modules(armillary.spatial.__path__):
        module = importlib.import_module(f"armillary.spatial.{info.name}")
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value) and not name.startswith("_"):
                yield f"{info.name}.{name}"
            elif inspect.isclass(value):
                yield from (
                    f"{info.name}.{name}.{key}"
                    for key, method in vars(value).items()
                    if key in {"__matmul__", "__add__"}
                    or (
                        not key.startswith("_")
                        and isinstance(
                            method, (staticmethod, property, type(public_functions))
                        )
                    )
                )


def flatten(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list, np.ndarray)):
        return [number for item in value for number in flatten(item)]
    return [value]


def test_the_table_names_every_public_function() -> None:
    assert set(public_functions()) == FLOATS_ONLY | TABLE.keys()


def test_traced_is_the_same_as_on_floats(sample) -> None:
    for name, (size, function) in TABLE.items():
        program = trace(lambda x, f=function: flatten(f(tuple(x))), x=(size,))
        verify(program)
        for numbers in sample(size, count=5):
            expected = flatten(function(numbers))
            np.testing.assert_allclose(
                evaluate(program, numbers),
                expected,
                rtol=1e-12,
                atol=1e-14,
                err_msg=name,
            )


def test_derivatives_are_those_of_the_slope() -> None:
    """The error of a central difference falls as h squared, at zero and elsewhere."""
    for name, (size, function) in TABLE.items():
        check_slope(name, size, function)


def check_slope(name: str, size: int, function: Callable[[Any], Any]) -> None:
    def derivative(x: Any, rate: Any) -> list[Any]:
        seeds = list(zip(x, rate, strict=True))
        return jvp(flatten(function(tuple(x))), seeds)

    program = trace(derivative, x=(size,), rate=(size,))
    rng = np.random.default_rng(5)
    for centre in (np.zeros(size), rng.uniform(-0.6, 0.6, size)):
        rate = rng.uniform(-1.0, 1.0, size)
        exact = np.array(evaluate(program, [*centre.tolist(), *rate.tolist()]))
        errors = []
        for h in (4e-3, 2e-3, 1e-3):
            ahead, behind = (
                np.array(flatten(function(tuple(map(float, centre + s * rate)))))
                for s in (h, -h)
            )
            errors.append(float(np.max(np.abs((ahead - behind) / (2 * h) - exact))))
        for coarse, fine in itertools.pairwise(errors):
            assert fine < 0.27 * coarse + 1e-11, (name, errors)
