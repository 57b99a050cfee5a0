"""Pipelines: machine code and NumPy agree, whatever regions and tables there are."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError, ShapeError, UnknownName
from armillary.kernel import compiler, pipeline_code, vectorize
from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import At, Each, Stage, When, While
from armillary.kernel.tables import Table, index, reals, span
from armillary.trace import Port, Program, trace
from armillary.trace.functions import minimum, select, sqrt

Array = np.ndarray
LANES = pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
TYPES = pytest.mark.parametrize("kind", ["float64", "float32"])
TOLERANCE = {"float64": 1e-11, "float32": 2e-3}


def agree(kernel: Kernel, *inputs: Array) -> None:
    """Compare machine code with NumPy, for a batch and for single calls."""
    native, kind = kernel._native, kernel.dtype.name
    given = [np.asarray(x, kind) for x in inputs]
    assert isinstance(native.core, Pipeline)
    wanted = evaluate(native.core, native.tables, *given)
    found = kernel(*given)
    found = found if isinstance(found, tuple) else (found,)
    single = kernel(*(x[2] for x in given))
    single = single if isinstance(single, tuple) else (single,)
    for a, b, one in zip(found, wanted, single, strict=True):
        bound = TOLERANCE[kind]
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound)
        np.testing.assert_array_equal(one, a[2])


# One kind of stage each.


def count_up() -> Program:
    """Count, and end where the count reaches the input."""

    def step(n: Any, q: Any) -> Any:
        return n + 1.0, select(n + 1.0 < q, 1.0, 0.0), np.sin(n) + q

    return trace(step, name="step", outputs=("n", "going", "last"), n=(), q=())


def counting(limit: int = 100) -> Pipeline:
    begin = trace(
        lambda q: (0.0, select(q > 0.0, 1.0, 0.0), -q),
        name="begin",
        outputs=("n", "going", "last"),
        q=(),
    )
    stages = (begin, While("going", (count_up(),), limit))
    return Pipeline("counting", (Port("q", ()),), (), stages, ("n", "last"))


@pytest.mark.parametrize("lanes", [1, 8])
def test_code_that_is_not_optimised_rounds_alike(
    lanes: int, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
):
    """Most tests run such code, see `conftest.py`."""
    if pytestconfig.getoption("optimise"):
        pytest.skip("all code is optimised")
    monkeypatch.setenv("ARMILLARY_CACHE", "off")

    def step(n: Any, q: Any, last: Any) -> Any:
        going = select(n + 1.0 < 20.0, 1.0, 0.0)
        return n + 1.0, going, q * last + np.cos(n) * q

    begin = trace(
        lambda q: (0.0, 1.0, q), name="begin", outputs=("n", "going", "last"), q=()
    )
    outputs = ("n", "going", "last")
    again = trace(step, name="step", outputs=outputs, n=(), q=(), last=())
    stages = (begin, While("going", (again,), 20))
    sums = Pipeline("sums", (Port("q", ()),), (), stages, ("last",))
    q = np.random.default_rng(0).uniform(-1.0, 1.0, 53)
    optimised = compile_pipeline(sums, lanes=lanes)()(q)
    monkeypatch.setattr(compiler, "level_of", lambda program: 0)
    np.testing.assert_array_equal(compile_pipeline(sums, lanes=lanes)()(q), optimised)


@pytest.mark.sampled(4)
@LANES
@TYPES
def test_lanes_that_have_ended_keep_their_numbers(lanes: int, kind: str):
    q = np.random.default_rng(0).uniform(-5.0, 30.0, 53).astype(kind)
    q[7] = np.nan
    n, last = compile_pipeline(counting(), dtype=kind, lanes=lanes)()(q)
    turns = np.where(q > 0.0, np.ceil(q), 0.0)
    np.testing.assert_array_equal(n, np.nan_to_num(turns))
    wanted = np.where(q > 0.0, np.sin(turns - 1.0) + q, -q)
    np.testing.assert_allclose(last, wanted, rtol=1e-6)


def test_a_loop_without_end_is_left_at_its_limit():
    n, _ = compile_pipeline(counting(limit=7))()(np.array([3.0, 1e9, -1.0]))
    assert n.tolist() == [3.0, 7.0, 0.0]


def spheres() -> Pipeline:
    """Return the least distance of pairs of balls that a mechanism carries."""

    def carried(q: Any) -> Any:
        c, s = np.cos(q), np.sin(q)
        return [[k * c[0], s[0] + 0.1 * k, c[1] * s[k % 3]] for k in range(6)], 1e9

    def closer(a: Any, b: Any, radius: Any, least: Any) -> Any:
        d = a - b
        return minimum(least, sqrt(d @ d) - radius)

    carry = trace(carried, name="carry", outputs=("centres", "least"), q=(3,))
    shapes = {"a": (3,), "b": (3,), "radius": (), "least": ()}
    gap = trace(closer, name="gap", outputs=("least",), **shapes)
    pairs = Table("pairs", (index("a", "centres"), index("b", "centres"), RADIUS))
    stages = (carry, Each("pairs", (gap,)))
    return Pipeline("spheres", (Port("q", (3,)),), (pairs,), stages, ("least",))


RADIUS = reals("radius")
PAIRS = {
    "a": np.array([0, 1, 2, 0, 5]),
    "b": np.array([3, 4, 5, 5, 3]),
    "radius": [0.1, 0.2, 0.3, 0.4, 0.5],
}


@LANES
@TYPES
def test_a_table_is_read_by_all_rows(lanes: int, kind: str):
    q = np.random.default_rng(1).uniform(-3.0, 3.0, (37, 3)).astype(kind)
    pipeline = spheres()
    code = compile_pipeline(pipeline, dtype=kind, lanes=lanes)
    kernel = code({"pairs": PAIRS})
    agree(kernel, q)
    centres = vectorize(pipeline.programs[0], q)[0]
    d = np.linalg.norm(centres[:, PAIRS["a"]] - centres[:, PAIRS["b"]], axis=-1)
    wanted = (d - np.array(PAIRS["radius"])).min(axis=1)
    np.testing.assert_allclose(kernel(q), wanted, rtol=1e-5, atol=1e-6)


def test_tables_may_have_any_length_and_change_without_compiling(
    monkeypatch: pytest.MonkeyPatch,
):
    code = compile_pipeline(spheres())
    monkeypatch.setattr("armillary.kernel.compiler.compiled", None)
    q = np.random.default_rng(2).uniform(-3.0, 3.0, (5, 3))
    full = code({"pairs": PAIRS})
    before = full(q)
    for count in (0, 1, 3, 1000):
        chosen = np.random.default_rng(count).integers(0, 5, count)
        part = {name: np.asarray(values)[chosen] for name, values in PAIRS.items()}
        agree(code({"pairs": part}), q)
    assert (code({"pairs": {n: [] for n in PAIRS}})(q) == 1e9).all()
    np.testing.assert_array_equal(full(q), before)  # its own tables


def test_tables_are_copied():
    radius = np.full(5, 0.5)
    kernel = compile_pipeline(spheres())({"pairs": {**PAIRS, "radius": radius}})
    q = np.ones((4, 3))
    before = kernel(q)
    radius[:] = 9.0
    np.testing.assert_array_equal(kernel(q), before)


def nested() -> Pipeline:
    """Return a search over groups: those that are near are looked at, until one hits.

    A group is near where q is less than its bound; one of its members hits where their
    sum with a sine of q exceeds a number.
    """
    begin = trace(lambda q: (1.0, 0.0), name="begin", outputs=("open", "worst"), q=(2,))
    near = trace(
        lambda q, bound: bound - q[0], name="near", outputs=("near",), q=(2,), bound=()
    )
    look = trace(
        lambda q, member, worst: select(
            np.sin(q[1]) + member[0] * member[1] > worst,
            np.sin(q[1]) + member[0] * member[1],
            worst,
        ),
        name="look",
        outputs=("worst",),
        **{"q": (2,), "member": (2,), "worst": ()},
    )
    close = trace(
        lambda worst: select(worst > 1.2, 0.0, 1.0),
        name="close",
        outputs=("open",),
        worst=(),
    )
    groups = Table("groups", (reals("bound"), span("members_of", "members")))
    members = Table("members", (reals("member", (2,)),))
    inner = When("near", (Each("members", (look,), within="members_of"), close))
    stages: tuple[Stage, ...] = (begin, Each("groups", (near, inner), active="open"))
    return Pipeline(
        "nested", (Port("q", (2,)),), (groups, members), stages, ("open", "worst")
    )


@LANES
@TYPES
def test_regions_nest(lanes: int, kind: str):
    rng = np.random.default_rng(3)
    count = rng.integers(0, 4, 12)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    tables = {
        "groups": {
            "bound": rng.uniform(-2.0, 2.0, 12),
            "members_of": np.stack([first, count], 1),
        },
        "members": {"member": rng.uniform(-1.0, 1.3, (count.sum(), 2))},
    }
    kernel = compile_pipeline(nested(), dtype=kind, lanes=lanes)(tables)
    q = rng.uniform(-3.0, 3.0, (101, 2)).astype(kind)
    agree(kernel, q)
    found, worst = kernel(q)
    assert 0.1 < found.mean() < 0.9
    for k in range(0, 101, 9):  # plain Python
        value = 0.0
        for bound, (start, size) in zip(*tables["groups"].values(), strict=True):
            if value > 1.2:
                break
            if bound > q[k, 0]:
                members = tables["members"]["member"][start : start + size]
                sums = np.sin(q[k, 1]) + members.prod(axis=1)
                value = max([value, *sums])
        assert worst[k] == pytest.approx(value, rel=1e-5)


# Random pipelines.


class _Maker:
    """Random programs over the columns and fields that can be read."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0
        self.shapes: dict[str, tuple[int, ...]] = {"q": (3,), "s": (), "where": ()}

    def program(self, readable: dict[str, tuple[int, ...]], known: set[str]) -> Program:
        names = list(self.rng.permutation(sorted(readable))[:4])
        shapes = {name: readable[name] for name in names}
        outputs = [self.output(known) for _ in range(self.rng.integers(1, 3))]
        outputs = list(dict.fromkeys(outputs))
        picks = self.rng.integers(0, 1000, 60).tolist()

        def formula(*inputs: Any) -> Any:
            pool = [x for value in inputs for x in np.ravel(value)] + [0.7]
            results = []
            for k, name in enumerate(outputs):
                size = int(np.prod(self.shapes[name]))
                row = []
                for e in range(size):
                    a, b, c = (
                        pool[picks[(7 * k + 3 * e + j) % 60] % len(pool)]
                        for j in range(3)
                    )
                    mixed = np.sin(a) * 0.9 + b / (2.0 + c * c)
                    row.append(select(a < c, mixed, np.cos(b) - 0.2))
                results.append(np.array(row, object).reshape(self.shapes[name]))
            return results[0] if len(results) == 1 else tuple(results)

        return trace(formula, name=f"p{self.count}", outputs=outputs, **shapes)

    def output(self, known: set[str]) -> str:
        if known and self.rng.random() < 0.5:
            return str(self.rng.choice(sorted(known)))
        self.count += 1
        name = f"c{self.count}"
        self.shapes[name] = [(), (2,), (2, 3), (5,)][self.rng.integers(0, 4)]
        return name

    def stages(
        self, known: set[str], fields: dict[str, tuple[int, ...]], depth: int
    ) -> tuple[Stage, ...]:
        found: list[Stage] = []
        for _ in range(self.rng.integers(2, 5)):
            readable = {**{name: self.shapes[name] for name in known}, **fields}
            scalars = [name for name in sorted(known) if self.shapes[name] == ()]
            choice = self.rng.integers(0, 7) if depth else 6
            inner = set(known)
            going = str(self.rng.choice(scalars))
            if choice == 0:
                body = self.stages(inner, fields, depth - 1)
                found.append(While(going, body, int(self.rng.integers(1, 4))))
            elif choice == 1:
                found.append(When(going, self.stages(inner, fields, depth - 1)))
            elif choice == 2:
                more = {**fields, "x": (2,), "entry": (3,)}
                until = going if self.rng.random() < 0.5 else ""
                body = self.stages(inner, more, depth - 1)
                found.append(Each("outer", body, active=until))
            elif choice == 3 and "x" in fields:
                body = self.stages(inner, {**fields, "y": ()}, depth - 1)
                found.append(Each("inner", body, within="some"))
            elif choice in {4, 5}:
                if choice == 4:
                    more = {**fields, "u": (2,), "v": (9,), "w": ()}
                else:
                    more = {**fields, "further": (3,)}
                at = going if self.rng.random() < 0.5 else "where"
                body = self.stages(known, more, depth - 1)
                found.append(At("chosen" if choice == 4 else "others", body, at))
            else:
                program = self.program(readable, known)
                known.update(port.name for port in program.outputs)
                found.append(program)
        return tuple(found)


def random_pipeline(seed: int) -> tuple[Pipeline, dict[str, Any]]:
    maker = _Maker(seed)
    outer = Table(
        "outer", (reals("x", (2,)), index("entry", "bank"), span("some", "inner"))
    )
    inner = Table("inner", (reals("y"),))
    chosen = Table("chosen", (reals("u", (2,)), reals("v", (9,)), reals("w")))
    others = Table("others", (reals("further", (3,)),))
    bank = trace(
        lambda q, s: [[np.sin(q[k] * (j + s)) for k in range(3)] for j in range(4)],
        name="bank",
        outputs=("bank",),
        **{"q": (3,), "s": ()},
    )
    maker.shapes["bank"] = (4, 3)
    known = {"q", "s", "where", "bank"}
    stages = (bank, *maker.stages(known, {}, 3))
    results = tuple(sorted(known))
    inputs = (Port("q", (3,)), Port("s", ()), Port("where", ()))
    all_tables = (outer, inner, chosen, others)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, 5)
    tables = {
        "outer": {
            "x": rng.uniform(-1, 1, (5, 2)),
            "entry": rng.integers(0, 4, 5),
            "some": np.stack([first, rng.integers(0, 3, 5)], 1),
        },
        "inner": {"y": rng.uniform(-1, 1, 5)},
        "chosen": {
            "u": rng.uniform(-1, 1, (6, 2)),
            "v": rng.uniform(-1, 1, (6, 9)),
            "w": rng.uniform(-1, 1, 6),
        },
        "others": {"further": rng.uniform(-1, 1, (seed % 4, 3))},  # may be empty
    }
    return Pipeline("random", inputs, all_tables, stages, results), tables


def random_rows(seed: int, count: int) -> tuple[Array, Array, Array]:
    """Return inputs of random pipelines; `where` leaves the tables, and is NaN once."""
    rng = np.random.default_rng(seed)
    q, s = rng.uniform(-2.0, 2.0, (count, 3)), rng.uniform(-2.0, 2.0, count)
    where = rng.uniform(-3.0, 9.0, count)
    where[count // 2] = np.nan
    return q, s, where


SEEDS = range(14)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("seed", "called"), [*((k, False) for k in SEEDS), *((k, True) for k in SEEDS[::2])]
)
def test_machine_code_agrees_with_numpy(
    seed: int, called: bool, monkeypatch: pytest.MonkeyPatch
):
    if called:  # every program is a function
        monkeypatch.setenv("ARMILLARY_CACHE", "off")
        monkeypatch.setattr(pipeline_code, "INLINE", -1)
    pipeline, tables = random_pipeline(seed)
    kernel = compile_pipeline(pipeline, lanes=(1, 2, 4, 8, 16)[seed % 5])(tables)
    agree(kernel, *random_rows(seed, 43))


def test_random_pipelines_nest_all_regions():
    def pairs(around: str, stages: tuple[Stage, ...]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for stage in stages:
            found.add((around, type(stage).__name__))
            if not isinstance(stage, Program):
                found |= pairs(type(stage).__name__, stage.stages)
        return found

    nested = set().union(*(pairs("", random_pipeline(k)[0].stages) for k in SEEDS))
    regions = "Each", "At", "While", "When"
    assert nested >= {(a, b) for a in regions for b in (*regions, "Program")}


# What holds for every kernel.


def test_rows_do_not_depend_on_their_neighbours():
    pipeline, tables = random_pipeline(4)
    kernel = compile_pipeline(pipeline)(tables)
    rows, order = random_rows(0, 64), np.random.default_rng(0).permutation(64)
    moved = kernel(*(each[order] for each in rows))
    for a, b in zip(kernel(*rows), moved, strict=True):
        np.testing.assert_array_equal(a[order], b)


def test_rows_beyond_the_fast_formulas_are_computed_again():
    """But not those that only a lane that has ended computes."""
    kernel = compile_pipeline(counting())()
    q = np.array([3.0, 2.5, 1.0, 0.5] * 3)
    agree(kernel, q)
    sines = trace(np.sin, name="sine", outputs=("y",), q=())
    begin = trace(lambda q: 10.0 - q, name="begin", outputs=("small",), q=())
    stages = (begin, trace(lambda q: q, name="y", outputs=("y",), q=()))
    pipeline = Pipeline(
        "sometimes", (Port("q", ()),), (), (*stages, When("small", (sines,))), ("y",)
    )
    kernel = compile_pipeline(pipeline)()
    q = np.array([1.0, 1e12, -1e12, 2.0, -1e13, np.inf, -np.inf, 3.0])
    y = kernel(q)
    np.testing.assert_allclose(y[[0, 2, 3, 4, 7]], np.sin(q[[0, 2, 3, 4, 7]]))
    np.testing.assert_array_equal(y[[1, 5]], q[[1, 5]])
    assert np.isnan(y[6])
    assert [kernel(x) for x in q[:6]] == y[:6].tolist()


def test_batches_strides_threads_and_results_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("armillary.kernel.kernel.OPERATIONS_PER_THREAD", 100)
    kernel = compile_pipeline(spheres())({"pairs": PAIRS})
    q = np.random.default_rng(5).uniform(-3.0, 3.0, (3, 1, 50, 3))
    wanted = kernel(q, threads=1)
    assert wanted.shape == (3, 1, 50)
    np.testing.assert_array_equal(kernel(q, threads=3), wanted)
    np.testing.assert_array_equal(kernel(q[:, :, ::-2]), wanted[:, :, ::-2])
    np.testing.assert_array_equal(kernel(np.asfortranarray(q)), wanted)
    out = np.zeros((3, 1, 50))
    assert kernel(q, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    with pytest.raises(ShapeError, match="'spheres' needs q of shape"):
        kernel(q[..., :2])


def test_a_kernel_can_be_pickled_and_copied():
    kernel = compile_pipeline(spheres(), dtype="float32", lanes=2)({"pairs": PAIRS})
    q = np.random.default_rng(6).uniform(-3.0, 3.0, (9, 3)).astype("float32")
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(q), kernel(q))
    assert (again.dtype, again.lanes) == (kernel.dtype, 2)
    assert copy.copy(kernel) is kernel
    assert "spheres" in repr(kernel)


def test_code_is_kept_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path))
    compile_pipeline(counting())
    assert len(list(tmp_path.glob("*.o"))) == 1
    compile_pipeline(counting())
    assert len(list(tmp_path.glob("*.o"))) == 1
    compile_pipeline(counting(limit=99))
    assert len(list(tmp_path.glob("*.o"))) == 2


def test_names_do_not_change_what_is_computed():
    assert counting().fingerprint == counting().fingerprint
    assert counting().fingerprint != counting(limit=1).fingerprint
    assert counting() == counting()
    assert hash(counting()) == hash(counting())
    assert spheres().operation_count > 10


def test_a_pipeline_has_no_single_program():
    with pytest.raises(KernelError, match="'counting' is a pipeline"):
        compile_pipeline(counting())().program  # noqa: B018


# Errors.

Q = (Port("q", ()),)
TWICE = trace(lambda q: 2.0 * q, name="twice", outputs=("y",), q=())
LONG = trace(lambda q: [q, q], name="long", outputs=("y",), q=())
OF_Y = trace(lambda y: y, name="of_y", outputs=("z",), y=())
ONLY = Table("t", (reals("r"), span("some", "t")))
NUMBERS = Table("n", (reals("r"),))
FAULTS: dict[str, tuple[tuple[Table, ...], tuple[Stage, ...], str]] = {
    "no column 'y', an input of 'of_y'": ((), (OF_Y,), "z"),
    "'y' has the shape \\(\\), in 'long' \\(2,\\)": ((), (TWICE, LONG), "y"),
    "no column 'y', an output": ((), (When("q", (TWICE,)),), "y"),
    "no column 'z', the position of a record": ((NUMBERS,), (At("n", (), "z"),), "y"),
    "an `At` reads 't', whose field 'some'": ((ONLY,), (At("t", (), "q"),), "y"),
    "'q' is a field and cannot be an input": ((Table("t", (reals("q"),)),), (), "y"),
    "no table named 'm'": ((NUMBERS,), (At("m", (), "q"),), "y"),
    "no column 'z', the end of a region": ((), (When("z", (TWICE,)),), "y"),
    "'y' is not one number": ((), (LONG, When("y", ())), "y"),
    "no table named 't'": ((), (TWICE, Each("t", ())), "y"),
    "no record around 't' has 'some'": ((ONLY,), (Each("t", (), "some"),), "y"),
    "'r' is not a span of 't'": ((ONLY,), (Each("t", (), "r"),), "y"),
    "'y' is a field": ((Table("t", (reals("y"),)),), (TWICE,), "y"),
    "two fields have the same name": ((ONLY, ONLY), (TWICE,), "y"),
    "'y' is only one number": (
        (Table("t", (index("i", "y"),)),),
        (TWICE, Each("t", ())),
        "y",
    ),
}


@pytest.mark.parametrize("message", FAULTS)
def test_what_cannot_run_is_refused(message: str):
    tables, stages, result = FAULTS[message]
    with pytest.raises((KernelError, UnknownName), match=message):
        Pipeline("faulty", Q, tables, stages, (result,))


BAD_TABLES: dict[str, tuple[type[Exception], Any]] = {
    "Table 'pairs' is missing": (KernelError, {}),
    "no table named 'pair'": (UnknownName, {"pair": PAIRS}),
    "Field 'b' of table 'pairs' is missing": (KernelError, {"pairs": {"a": [0]}}),
    "no field named 'c' in table 'pairs'": (UnknownName, {"pairs": {**PAIRS, "c": 1}}),
    "'a' of table 'pairs' is 6 in record 1; 'centres' has 6": (
        KernelError,
        {"pairs": {**PAIRS, "a": [0, 6, 1, 1, 1]}},
    ),
    "is -1 in record 0": (KernelError, {"pairs": {**PAIRS, "a": [-1, 0, 1, 1, 1]}}),
    "needs whole numbers": (KernelError, {"pairs": {**PAIRS, "a": [0.5, 1, 2, 3, 4]}}),
    "differ in length: 5 of a, 5 of b, 1 of radius": (
        ShapeError,
        {"pairs": {**PAIRS, "radius": [0.1]}},
    ),
    "needs the shape \\(count\\), not \\(5, 1\\)": (
        ShapeError,
        {"pairs": {**PAIRS, "radius": np.ones((5, 1))}},
    ),
    "needs numbers": (ShapeError, {"pairs": {**PAIRS, "radius": list("abcde")}}),
}


@pytest.mark.parametrize("message", BAD_TABLES)
def test_tables_are_checked(message: str):
    error, tables = BAD_TABLES[message]
    with pytest.raises((error, ShapeError), match=message):
        compile_pipeline(spheres())(tables)


@pytest.mark.parametrize(("inputs", "results"), [((), ("y",)), (Q, ())])
def test_there_is_an_input_and_an_output(inputs: Any, results: Any):
    with pytest.raises(KernelError, match="an input and an output"):
        Pipeline("empty", inputs, (), (TWICE,), results)


def test_spans_are_checked():
    code = compile_pipeline(nested())
    for wrong in ([-1, 1], [0, 3], [2, 1], [0, -1], [2**40, 1]):
        tables = {
            "groups": {"bound": [0.0], "members_of": [wrong]},
            "members": {"member": np.zeros((2, 2))},
        }
        with pytest.raises(KernelError, match="'members' has 2 entries"):
            code(tables)
