"""Regions that run for those records alone whose boxes a box of the rows meets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import BOXES, Each, NearRecords
from armillary.kernel.tables import Table, reals, span
from armillary.trace import Port, trace
from armillary.trace.functions import select

NEAR = NearRecords("boxes", "near", "low", "high")
REACH = 0.25


def hits(near: NearRecords | None) -> Pipeline:
    """Return how often balls around points of groups have a point in them."""
    low, high = (
        trace(
            lambda x, sign=sign: [a + sign * REACH for a in x],
            name=name,
            outputs=(name,),
            x=(3,),
        )
        for name, sign in (("low", -1.0), ("high", 1.0))
    )

    def hit(x: Any, point: Any, count: Any) -> Any:
        square = sum((a - b) * (a - b) for a, b in zip(x, point, strict=True))
        return select(square < REACH * REACH, count + 1.0, count)

    shapes: Any = {"x": (3,), "point": (3,), "count": ()}
    counted = trace(hit, name="count", outputs=("count",), **shapes)
    begin = trace(lambda x: 0.0 * x[0], name="begin", outputs=("count",), x=(3,))
    points = Each("points", (counted,), within="members", near=near)
    return Pipeline(
        "hits",
        (Port("x", (3,)),),
        (
            Table("groups", (span("members", "points"), span("near", "boxes"))),
            Table("points", (reals("point", (3,)),)),
            Table("boxes", (reals("box", (6, BOXES)),)),
        ),
        (begin, low, high, Each("groups", (points,))),
        ("count",),
    )


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 16), ("float64", 4), ("float64", 1)]
)
def test_all_records_that_matter_run(dtype: str, lanes: int):
    rng = np.random.default_rng(0)
    counts = [90, 5, 16]  # more than 64, few without boxes, one record of boxes
    points = rng.uniform(-1.0, 1.0, (sum(counts), 3))
    first = np.cumsum(counts) - counts
    blocks, spans = [], []
    for start, count in zip(first, counts, strict=True):
        needed = 0 if count < 9 else -(-count // BOXES)
        spans.append((len(blocks), needed))
        for k in range(needed):
            some = points[start + k * BOXES : start + min(count, (k + 1) * BOXES)]
            box = np.full((6, BOXES), np.inf)
            box[3:] = -np.inf
            box[:3, : len(some)], box[3:, : len(some)] = some.T, some.T
            blocks.append(box)
    tables = {
        "groups": {"members": np.stack([first, counts], axis=1), "near": spans},
        "points": {"point": points},
        "boxes": {"box": blocks},
    }
    X = rng.uniform(-1.0, 1.0, (203, 3))
    X[:32] = X[0] + rng.uniform(-0.05, 0.05, (32, 3))  # rows that are near each other
    expected = (np.linalg.norm(X[:, None] - points, axis=-1) < REACH).sum(axis=1)
    for near in (NEAR, None):
        code = compile_pipeline(hits(near), dtype=np.dtype(dtype), lanes=lanes)
        assert code(tables)(X.astype(dtype)).tolist() == expected.tolist()
    assert expected.max() > 3


@pytest.mark.parametrize(
    ("near", "message"),
    [
        (
            NearRecords("points", "near", "low", "high"),
            "not the one field of 16",
        ),
        (
            NearRecords("boxes", "members", "low", "high"),
            "is not a span of 'boxes'",
        ),
        (NearRecords("boxes", "near", "x", "wide"), "no column 'wide'"),
    ],
)
def test_names_are_looked_up(near: NearRecords, message: str):
    with pytest.raises(KernelError, match=message):
        hits(near)
