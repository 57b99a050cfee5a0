"""The farthest of the points of a table, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import Farthest
from armillary.kernel.tables import Table, reals
from armillary.trace import Port

POINTS = Table("hull", (reals("number"), reals("corners", (3, 4))))
OUTPUT = Port("point", (3,))


def search(points: str = "corners") -> Pipeline:
    stage = Farthest("hull", points, "direction", OUTPUT)
    inputs = (Port("direction", (3,)),)
    return Pipeline("search", inputs, (POINTS,), (stage,), ("point",))


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_the_farthest_point_is_that_of_numpy(lanes: int, kind: str):
    rng = np.random.default_rng(0)
    points = rng.integers(-3, 4, (9, 3, 4)).astype(np.float64)  # some are equally far
    code = compile_pipeline(search(), dtype=kind, lanes=lanes)
    D = rng.integers(-2, 3, (50, 3)).astype(kind)
    for count in (1, 2, 9):
        tables = {"number": np.zeros(count), "corners": points[:count]}
        found = code({"hull": tables})(D)
        flat = np.concatenate([*points[:count]], axis=1).T
        expected = flat[np.argmax(D @ flat.T, axis=1)]
        np.testing.assert_array_equal(found, expected)
        records = POINTS.pack(tables, {}, np.dtype(kind))
        (reference,) = evaluate(search(), {"hull": records}, D)
        np.testing.assert_array_equal(reference, expected)
    D[3] = np.nan
    assert np.isfinite(code({"hull": tables})(D)).all()


def test_points_must_be_there():
    with pytest.raises(KernelError, match="'hull' has no points 'number'"):
        search("number")
