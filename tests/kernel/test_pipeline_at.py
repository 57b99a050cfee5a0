"""Pipelines whose rows read different records, compared with plain indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.kernel import pipeline_code
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import At, Each, Stage, When, While
from armillary.kernel.tables import Table, reals
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

Array = np.ndarray
LANES = pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
TYPES = pytest.mark.parametrize("kind", ["float64", "float32"])
FIELDS = {"a": (), "b": (3,), "c": (5, 4)}
TABLE = Table("records", tuple(reals(name, shape) for name, shape in FIELDS.items()))
WHERE = (Port("where", ()),)
ENDS = np.array([np.inf, -np.inf, 1e300, -1e300, 1e30, -1.0, -0.0, -0.5, -1e-9, np.nan])


@pytest.fixture(params=["spliced", "called"])
def inline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put programs where they are used, or make each a function."""
    if request.param == "called":
        monkeypatch.setenv("ARMILLARY_CACHE", "off")
        monkeypatch.setattr(pipeline_code, "INLINE", -1)


def copy(field: str, to: str) -> Program:
    """Return a program that copies a field to a column."""
    return trace(lambda x: x, name=to, outputs=(to,), **{field: FIELDS[field]})


def random_records(count: int) -> dict[str, Array]:
    rng = np.random.default_rng(count)
    return {name: rng.normal(size=(count, *shape)) for name, shape in FIELDS.items()}


def chosen(records: Array, where: Array) -> Array:
    """Return the record of each row by plain Python."""
    found = np.full((len(where), *records.shape[1:]), np.nan)
    for k, x in enumerate(where.tolist()):
        if not np.isnan(x) and len(records):
            beyond = x >= len(records) - 1
            found[k] = records[-1 if beyond else 0 if x < 0.0 else int(x)]
    return found


@pytest.mark.sampled(6)
@LANES
@TYPES
@pytest.mark.parametrize("count", [0, 1, 2, 37])
def test_each_row_reads_its_record(lanes: int, kind: str, count: int, inline: None):
    copies = [copy(name, f"of_{name}") for name in FIELDS]
    stages = (At("records", tuple(copies), "where"),)
    results = tuple(f"of_{name}" for name in FIELDS)
    pipeline = Pipeline("lookup", WHERE, (TABLE,), stages, results)
    records = random_records(count)
    kernel = compile_pipeline(pipeline, dtype=kind, lanes=lanes)({"records": records})
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        where = np.concatenate([rng.uniform(-5.0, count + 5.0, 60), ENDS]).astype(kind)
    for values, found in zip(records.values(), kernel(where), strict=True):
        np.testing.assert_array_equal(found, chosen(values.astype(kind), where))


def test_a_field_that_is_not_read_costs_nothing():
    pipeline = Pipeline(
        "part", WHERE, (TABLE,), (At("records", (copy("b", "y"),), "where"),), ("y",)
    )
    records = random_records(9)
    y = compile_pipeline(pipeline)({"records": records})(np.arange(9.0))
    np.testing.assert_array_equal(y, records["b"])


@pytest.mark.sampled(6)
@LANES
@TYPES
def test_rows_follow_chains_of_different_length(lanes: int, kind: str, inline: None):
    """Lanes whose chain has ended are at -1, before all records."""
    chain = Table("chain", (reals("following"), reals("weight")))
    begin = trace(
        lambda q: (q, 0.0, select(q < 0.0, 0.0, 1.0)),
        name="begin",
        outputs=("at", "total", "going"),
        q=(),
    )
    follow = trace(
        lambda following, weight, total: (
            following,
            total + weight,
            select(following < 0.0, 0.0, 1.0),
        ),
        name="follow",
        outputs=("at", "total", "going"),
        following=(),
        weight=(),
        total=(),
    )
    stages = (begin, While("going", (At("chain", (follow,), "at"),), 100))
    pipeline = Pipeline("chains", (Port("q", ()),), (chain,), stages, ("total", "at"))
    rng = np.random.default_rng(1)
    following = np.array([rng.integers(-1, k) if k else -1 for k in range(200)])
    weight = rng.integers(1, 9, 200)
    tables = {"chain": {"following": following, "weight": weight}}
    q = rng.integers(-1, 200, 71)
    wanted = []
    for start in q.tolist():
        at, total = start, 0
        while at >= 0:
            at, total = int(following[at]), total + int(weight[at])
        wanted.append(total)
    assert len(set(wanted)) > 20
    total, at = compile_pipeline(pipeline, dtype=kind, lanes=lanes)(tables)(
        q.astype(kind)
    )
    np.testing.assert_array_equal(total, wanted)
    np.testing.assert_array_equal(at, -1.0)


@pytest.mark.sampled(3)
@LANES
def test_a_table_is_read_at_two_columns_and_another_beside_it(lanes: int, inline: None):
    """Interpolation between records is that of NumPy, at the ends, too."""
    heights = Table("heights", (reals("height"),))
    scales = Table("scales", (reals("scale"),))
    split = trace(
        lambda x, other: (x + 1.0, x - np.floor(x), other * 2.0),
        name="split",
        outputs=("right", "t", "doubled"),
        x=(),
        other=(),
    )

    def of(output: str) -> Program:
        return trace(lambda height: height, name=output, outputs=(output,), height=())

    mix = trace(
        lambda a, b, t, scale: scale * (a + t * (b - a)),
        name="mix",
        outputs=("y",),
        **{"left": (), "end": (), "t": (), "scale": ()},
    )
    ends = (At("heights", (of("left"),), "x"), At("heights", (of("end"),), "right"))
    stages = (split, *ends, At("scales", (mix,), "doubled"))
    inputs = Port("x", ()), Port("other", ())
    pipeline = Pipeline("interpolation", inputs, (heights, scales), stages, ("y",))
    rng = np.random.default_rng(2)
    height, scale = rng.normal(size=30), rng.uniform(1.0, 2.0, 11)
    tables = {"heights": {"height": height}, "scales": {"scale": scale}}
    x, other = rng.uniform(-3.0, 33.0, 90), rng.uniform(0.0, 5.0, 90)
    y = compile_pipeline(pipeline, lanes=lanes)(tables)(x, other)
    wanted = np.interp(x, np.arange(30), height) * scale[(2.0 * other).astype(int)]
    np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(3)
@LANES
def test_regions_around_the_same_table_hide_each_other(lanes: int, inline: None):
    """The inner record counts inside, the outer one again behind; in any region."""
    last = trace(lambda a: a, name="last", outputs=("last",), a=())
    inner: tuple[Stage, ...] = (
        copy("a", "before"),
        At("records", (copy("a", "inside"),), "other"),
        Each("records", (last,)),
        copy("a", "after"),
    )
    nothing = trace(
        lambda q: (q, q, q, q),
        name="nothing",
        outputs=("before", "inside", "last", "after"),
        where=(),
    )
    each = Each("records", (At("records", (copy("a", "each"),), "other"), last))
    start = trace(lambda q: q, name="start", outputs=("each",), where=())
    stages = (nothing, start, At("records", inner, "where"), each)
    results = "before", "inside", "last", "after", "each"
    inputs = (*WHERE, Port("other", ()))
    pipeline = Pipeline("hiding", inputs, (TABLE,), stages, results)
    records = random_records(6)
    rng = np.random.default_rng(3)
    where, other = rng.integers(0, 6, (2, 40)).astype(float)
    kernel = compile_pipeline(pipeline, lanes=lanes)({"records": records})
    a = records["a"]
    first, second = a[where.astype(int)], a[other.astype(int)]
    wanted = first, second, np.full(40, a[-1]), first, second
    for x, y in zip(kernel(where, other), wanted, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.sampled(6)
@LANES
@TYPES
def test_rows_outside_of_a_region_keep_their_numbers(
    lanes: int, kind: str, inline: None
):
    """Also where their positions are nonsense."""
    start = trace(lambda q: -q, name="start", outputs=("y",), going=())
    stages = (start, When("going", (At("records", (copy("a", "y"),), "where"),)))
    inputs = (*WHERE, Port("going", ()))
    pipeline = Pipeline("some", inputs, (TABLE,), stages, ("y",))
    records = random_records(8)
    kernel = compile_pipeline(pipeline, dtype=kind, lanes=lanes)({"records": records})
    rng = np.random.default_rng(4)
    going = rng.choice([-1.0, 0.0, 1.0], 50)
    with np.errstate(over="ignore"):
        nonsense = rng.choice(ENDS, 50).astype(kind)
    where = np.where(going > 0.0, rng.integers(0, 8, 50), nonsense).astype(kind)
    values = chosen(records["a"].astype(kind), where)
    wanted = np.where(going > 0.0, values, -going)
    np.testing.assert_array_equal(kernel(where, going.astype(kind)), wanted)


def test_the_column_counts_in_the_fingerprint():
    def pipeline(region: Any) -> Pipeline:
        inputs = (*WHERE, Port("other", ()))
        return Pipeline("one", inputs, (TABLE,), (region,), ("y",))

    body = (copy("a", "y"),)
    found = [pipeline(At("records", body, name)) for name in ("where", "other")]
    assert found[0].fingerprint != found[1].fingerprint
    assert found[0] == pipeline(At("records", body, "where"))
