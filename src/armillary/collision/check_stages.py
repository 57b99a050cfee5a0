"""The pipelines of collision checks: poses of links, spheres around shapes, shapes.

Spheres are decisive for most pairs: those around links first, then those around each
shape. Only pairs of shapes whose spheres are too near call the code of their kinds.
Which pairs there are is in tables, so that pipelines differ by their links alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armillary.kernel.pipeline import Call, Each, Pipeline, Stage, When, program
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.tables import Field, Table, code, index, reals, span
from armillary.kinematics.moving_links import POSES, MovingLinks
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, dot, subtract, three
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, select, sqrt

__all__ = [
    "CENTRES",
    "SHAPE_PAIRS",
    "SPHERES",
    "SPHERE_PAIRS",
    "UNDECIDED",
    "Question",
    "check_pipeline",
    "compiled",
    "least_of_near_stages",
    "limits",
    "link_pairs",
    "placed_stages",
    "square",
]

Question: TypeAlias = Literal["touching", "clearance", "motion"]
"""Whether links touch: 0 if not, 1 if so, `UNDECIDED` where rounding decides, or a pose
is NaN. Or the least distance [m], NaN where a pose is. Or what `motion_stages` says."""

UNDECIDED: Final = 0.5

CENTRES: Final = "centres"
VALUE: Final = Port("value", ())
VECTOR: Final = (3,)

SPHERES: Final = Table(
    "spheres",
    (index("carrier_pose", POSES), reals("centre", VECTOR), index("sphere", CENTRES)),
)
SPHERE_PAIRS: Final = Table(
    "sphere_pairs",
    (index("sphere_a", CENTRES), index("sphere_b", CENTRES), reals("sphere_reach")),
)
SHAPE_PAIRS: Final = Table(
    "shape_pairs",
    (
        index("shape_a", CENTRES),
        index("shape_b", CENTRES),
        reals("shape_reach"),
        index("X_A", POSES),
        index("X_B", POSES),
        code("distance"),
    ),
)
"""`X_A` and `X_B` are in the order that the code of the pair takes them in."""

CALL: Final = Call("distance", ("X_A", "X_B"), (VALUE,))


def link_pairs(*more: Field) -> Table:
    """Return the table of pairs of links, whose records may have more fields."""
    return Table(
        "link_pairs",
        (
            index("link_a", CENTRES),
            index("link_b", CENTRES),
            reals("link_reach"),
            span("of_spheres", "sphere_pairs"),
            span("of_shapes", "shape_pairs"),
            *more,
        ),
    )


def limits(joints: int) -> Table:
    """Return the table of what decides, and for which rows.

    Touching are pairs whose distance is below `margin - rounding`, free those above
    `margin + rounding`; spheres are compared by squares, within `square_rounding`. Rows
    beyond `most_q` and `most_extent` are left undecided.
    """
    names = "margin", "rounding", "square_rounding", "most_extent"
    fields = (*map(reals, names), reals("most_q", (joints,)))
    return Table("limits", fields, is_single=True)


def check_pipeline(moving: MovingLinks, spheres: int, asked: Question) -> Pipeline:
    """Return the pipeline of a question about the joint positions of a cell.

    Args:
        moving: The links of the cell.
        spheres: How many there may be.
        asked: The question; see `Question`. For `touching`, reaches in tables are the
            squares of what is near; for `clearance` they are sums of radii.
    """
    stages = _touching(moving) if asked == "touching" else _clearance(moving)
    return Pipeline(
        f"collision_{asked}",
        moving.inputs,
        (
            *moving.tables,
            limits(moving.joints),
            SPHERES,
            link_pairs(),
            SPHERE_PAIRS,
            SHAPE_PAIRS,
        ),
        (*moving.stages, Each("limits", stages)),
        ("found",),
        (Port(CENTRES, (spheres, 3)),),
    )


@lru_cache(maxsize=64)
def compiled(
    pipeline: Pipeline, dtype: np.dtype[Any], lanes: int | None = None
) -> CompiledPipeline:
    """Return the code of a pipeline, the same for equal ones."""
    return compile_pipeline(pipeline, dtype=dtype, lanes=lanes)


def placed_stages(moving: MovingLinks) -> tuple[Stage, ...]:
    """Return stages from poses to the centres of spheres, and the column `sound`."""
    given = {POSES: (moving.count, 3, 4)}
    if moving.is_compiled:
        given |= dict.fromkeys(("q", "most_q"), (moving.joints,))
    carried = {"carrier_pose": (3, 4), "centre": VECTOR, "extent": ()}
    bounds = {"extent": (), "most_extent": (), "usual": ()}
    return (
        program(_usual, "usual extent", **given),
        Each("spheres", (program(_centre, "sphere extent", **carried),)),
        program(_sound, "sound", **bounds),
    )


def _usual(poses: Any, q: Any = (), most_q: Any = ()) -> Any:
    """Return 1 where all poses are numbers and q is not too large."""
    total: Number = sum(np.ravel(poses).tolist(), 0.0)
    is_usual = absolute(total) < np.inf  # false of NaN, too
    for x, most in zip(q, most_q, strict=False):
        is_usual = is_usual & (absolute(x) <= most)
    return select(is_usual, 1.0, 0.0), 0.0


def _centre(carrier_pose: Any, centre: Any, extent: Any) -> Any:
    x, y, z = Pose.from_matrix(carrier_pose) @ three(centre)
    most = maximum(maximum(absolute(x), absolute(y)), absolute(z))
    return (x, y, z), select(most > extent, most, extent)


def _sound(extent: Any, most_extent: Any, usual: Any) -> Any:
    return select(extent <= most_extent, usual, 0.0)


def square(a: Any, b: Any) -> Number:
    """Return the square of the distance of two points."""
    between = subtract(three(a), three(b))
    return dot(between, between)


# whether links touch


def _touching(moving: MovingLinks) -> tuple[Stage, ...]:
    link = {"link_a": VECTOR, "link_b": VECTOR, "link_reach": ()}
    sphere = {"sphere_a": VECTOR, "sphere_b": VECTOR, "sphere_reach": ()}
    shape = {"shape_a": VECTOR, "shape_b": VECTOR, "shape_reach": ()}
    flags = {"going": (), "doubt": ()}
    judged = {"value": (), "margin": (), "rounding": (), **flags}
    near = (
        program(_within_and_start, "near deepest", **link),
        When(
            "near",
            (
                Each(
                    "sphere_pairs",
                    (program(_deeper, "deepest", **sphere, deepest=()),),
                    within="of_spheres",
                ),
                program(
                    _judge_spheres,
                    "going doubt",
                    deepest=(),
                    square_rounding=(),
                    **flags,
                ),
                Each(
                    "shape_pairs",
                    (
                        program(_within, "near_shape", **shape),
                        When(
                            "near_shape",
                            (CALL, program(_judge, "going doubt", **judged)),
                        ),
                    ),
                    within="of_shapes",
                ),
            ),
        ),
    )
    return (
        *placed_stages(moving),
        program(_begin, "going doubt", sound=()),
        Each("link_pairs", near, active="going"),
        program(_verdict, "found", sound=(), **flags),
    )


def _begin(sound: Any) -> Any:
    return sound, 0.0


def _within(a: Any, b: Any, reach: Any) -> Any:
    return reach - square(a, b)


def _within_and_start(a: Any, b: Any, reach: Any) -> Any:
    return _within(a, b, reach), -1.0


def _deeper(a: Any, b: Any, reach: Any, deepest: Any) -> Any:
    depth = _within(a, b, reach)
    return select(depth > deepest, depth, deepest)


def _judge_spheres(deepest: Any, rounding: Any, going: Any, doubt: Any) -> Any:
    is_touching, is_near = deepest > rounding, deepest >= 0.0
    return select(is_touching, 0.0, going), select(is_near & ~is_touching, 1.0, doubt)


def _judge(value: Any, margin: Any, rounding: Any, going: Any, doubt: Any) -> Any:
    is_touching, is_free = value < margin - rounding, value > margin + rounding
    is_known = is_touching | is_free
    return select(is_touching, 0.0, going), select(is_known, doubt, 1.0)


def _verdict(sound: Any, going: Any, doubt: Any) -> Any:
    verdict = select(going > 0.0, UNDECIDED * doubt, 1.0)
    return select(sound > 0.0, verdict, UNDECIDED)


# clearance


def _clearance(moving: MovingLinks) -> tuple[Stage, ...]:
    link = {"link_a": VECTOR, "link_b": VECTOR, "link_reach": (), "least": ()}
    near = program(_may_be_less, "near", **link)
    return (
        *placed_stages(moving),
        program(_begin_least, "least", sound=()),
        Each("link_pairs", (near, When("near", least_of_near_stages()))),
        program(_same, "found", least=()),
    )


def least_of_near_stages() -> tuple[Stage, ...]:
    """Return stages by which `least` becomes no more than the distance of two links."""
    sphere = {"sphere_a": VECTOR, "sphere_b": VECTOR, "sphere_reach": (), "least": ()}
    shape = {"shape_a": VECTOR, "shape_b": VECTOR, "shape_reach": (), "least": ()}
    exact = CALL, program(_least, "least", value=(), least=())
    return (
        Each(
            "sphere_pairs",
            (program(_least_of_spheres, "least", **sphere),),
            within="of_spheres",
        ),
        Each(
            "shape_pairs",
            (program(_may_be_less, "near_shape", **shape), When("near_shape", exact)),
            within="of_shapes",
        ),
    )


def _same(least: Any) -> Any:
    return least


def _begin_least(sound: Any) -> Any:
    return select(sound > 0.0, np.inf, np.nan)


def _may_be_less(a: Any, b: Any, reach: Any, least: Any) -> Any:
    """Return a number above 0 where spheres are nearer than the least so far.

    The depth of some pairs is an upper bound, so all that may overlap are wanted.
    """
    gap = sqrt(square(a, b)) - reach
    so_far = select(least < 0.0, 0.0, least)  # NaN stays NaN
    return so_far - gap


def _least_of_spheres(a: Any, b: Any, reach: Any, least: Any) -> Any:
    return _least(sqrt(square(a, b)) - reach, least)


def _least(value: Any, least: Any) -> Any:
    return select(value >= least, least, value)
