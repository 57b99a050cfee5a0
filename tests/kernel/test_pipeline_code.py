"""Long rows of pipelines are moved by loops, short ones by straight code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.kernel.block_rows import LONGEST, PART
from armillary.kernel.compiler import kernel_text
from armillary.kernel.machine_type import F64
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import Each
from armillary.kernel.tables import Table, index
from armillary.trace import Port, trace

SIZES = 1, LONGEST, LONGEST + 1, LONGEST + PART, 3 * LONGEST + PART - 1


def doubling(size: int) -> Pipeline:
    """The double of each number of a row, in reverse."""
    program = trace(lambda a: 2.0 * a, name="double", outputs=("b",), a=())
    table = Table("places", (index("a", "row"), index("b", "doubled")))
    return Pipeline(
        "doubling",
        (Port("row", (size,)),),
        (table,),
        (Each("places", (program,)),),
        ("doubled",),
        (Port("doubled", (size,)),),
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_rows_of_any_length(lanes: int, size: int, kind: Any):
    places = {"places": {"a": np.arange(size), "b": np.arange(size)[::-1]}}
    kernel = compile_pipeline(doubling(size), dtype=kind, lanes=lanes)(places)
    for batch in ((), (1,), (lanes + 3,)):
        rows = np.random.default_rng(size).normal(size=(*batch, size)).astype(kind)
        assert kernel(rows).tolist() == (2.0 * rows[..., ::-1]).tolist()


def test_the_code_of_long_rows_is_short():
    sizes = 2 * LONGEST, 8 * LONGEST
    short, long = (len(kernel_text(doubling(n), F64.wide(4))) for n in sizes)
    assert long < 1.01 * short
