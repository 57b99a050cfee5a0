"""Programs and pipelines as JavaScript compute what they do in Python."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.javascript import (
    LIBRARY,
    RULES,
    pipeline_function,
    program_function,
)
from armillary.kernel.lowering import LOWERING
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_reference import evaluate as evaluate_pipeline
from armillary.kernel.stages import At, Call, Each, When, While
from armillary.kernel.tables import Table, code, index, pack_all, reals, span
from armillary.trace import OPS, Port, Program, trace
from armillary.trace.functions import minimum
from armillary.trace.program import evaluate
from javascript import calls, run_javascript
from one_operation import one_operation

CORNERS = [
    *(0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 1e-7, 7.25),
    *(1.0 + 2**-52, -1.0 - 2**-52, 0.49999999999999994, 4503599627370497.5, 1e300),
    *(800.0, -800.0, 1e-300, math.inf, -math.inf, math.nan),
]


def random_formula(rng: np.random.Generator) -> Program:
    """A program of 60 operations of what was computed before, without cliffs."""
    names = ["add", "sub", "mul", "sin", "cos", "atan2", "tanh", "min", "select"]
    picks = rng.integers(0, 1000, (60, 3)).tolist()
    chosen = rng.choice(names, 60).tolist()

    def formula(q: Any) -> Any:
        pool = [*q, 0.5, -2.0]
        for name, (a, b, c) in zip(chosen, picks, strict=True):
            x, y, z = (pool[k % len(pool)] for k in (a, b, c))
            op = OPS[name]
            args = (x < y, y, z) if name == "select" else (x, y)[: op.arity]
            pool.append(OPS["sin"](op(*args)))
        return pool[-8:]

    return trace(formula, name="random", q=(4,))


def test_every_operation_is_a_row_of_both_tables():
    lowered = {op.lowering for op in OPS.values()}
    assert lowered == RULES.keys() == LOWERING.keys()


def test_programs_compute_what_they_do_on_floats(tmp_path: Path):
    rng = np.random.default_rng(0)
    pairs = [[[a], [b]] for a in CORNERS for b in CORNERS]
    triples = [[[a], [b], [-a]] for a in CORNERS for b in CORNERS]
    cases: list[tuple[Program, list[Any]]] = []
    for name, op in sorted(OPS.items()):
        given = {1: [[[a]] for a in CORNERS], 2: pairs, 3: triples}[op.arity]
        cases.append((one_operation(name), given))
    for _ in range(20):
        cases.append((random_formula(rng), rng.normal(size=(20, 1, 4)).tolist()))
    texts, wanted = [LIBRARY], []
    for k, (program, rows) in enumerate(cases):
        texts.append(program_function(program, f"f{k}"))
        wanted.append(
            [evaluate(program, [x for array in row for x in array]) for row in rows]
        )
    every = [
        calls(f"f{k}", [port.size for port in program.outputs], rows)
        for k, (program, rows) in enumerate(cases)
    ]
    texts.append(f"finish([{', '.join(every)}]);")
    found = run_javascript("\n".join(texts), tmp_path)
    compared = 0
    for (program, rows), ours, theirs in zip(cases, found, wanted, strict=True):
        for row, a, b in zip(rows, ours, theirs, strict=True):
            compared += len(b)
            shown = f"{program.name} of {row}"
            np.testing.assert_allclose(a[0], b, 1e-13, 1e-13, err_msg=shown)
    assert compared > 10000


def regions() -> tuple[Pipeline, dict[str, Any], list[Any]]:
    """A pipeline with every kind of region and field but calls."""
    begin = trace(
        lambda q: ([[q[0], 1.0], [2.0, q[1]], [q[0] * q[1], 3.0]], 4.0, q[0], 1e9),
        name="begin",
        outputs=("bank", "left", "where", "least"),
        q=(2,),
    )
    down = trace(
        lambda left, q: (left - 1.0 - 0.1 * np.sin(q[0]), left * q[1]),
        name="down",
        outputs=("left", "last"),
        left=(),
        q=(2,),
    )
    moved = trace(
        lambda entry, shift: entry + shift,
        name="moved",
        outputs=("entry",),
        entry=(2,),
        shift=(),
    )
    nearer = trace(
        lambda entry, weight, least: minimum(least, weight * entry[0] - entry[1]),
        name="nearer",
        outputs=("least",),
        entry=(2,),
        weight=(),
        least=(),
    )
    picked = trace(
        lambda least, chosen: least + chosen[0] * chosen[1],
        name="picked",
        outputs=("answer",),
        least=(),
        chosen=(2,),
    )
    outer = Table("outer", (index("entry", "bank"), reals("shift"), span("own", "w")))
    weights, options = (
        Table("w", (reals("weight"),)),
        Table("o", (reals("chosen", (2,)),)),
    )
    stages = (
        begin,
        down,
        While("left", (down,), 3),
        Each("outer", (moved, Each("w", (nearer,), within="own")), active="least"),
        At("o", (picked,), "where"),
        When("last", (down,)),
    )
    pipeline = Pipeline(
        "regions",
        (Port("q", (2,)),),
        (outer, weights, options),
        stages,
        ("answer", "left", "last", "bank", "hole"),
        scratch=(Port("hole", (2,)),),
    )
    tables = {
        "outer": {
            "entry": [0, 2, 0, 1],
            "shift": [0.5, -1.0, 2.0, 0.25],
            "own": [[0, 2], [1, 0], [1, 3], [3, 1]],
        },
        "w": {"weight": [1.0, -2.0, 0.5, 3.0]},
        "o": {"chosen": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]},
    }
    rows = np.random.default_rng(1).uniform(-4.0, 5.0, (60, 2))
    rows[3, 0] = np.nan
    rows[4, 0], rows[5, 0] = np.inf, -np.inf
    return pipeline, tables, rows.tolist()


def test_regions_and_tables_compute_what_they_do_with_numpy(tmp_path: Path):
    pipeline, tables, rows = regions()
    packed = pack_all(pipeline.tables, tables, pipeline.columns, np.dtype(float))
    wanted = evaluate_pipeline(pipeline, packed, np.array(rows))
    text = pipeline_function(pipeline, tables, "regions")
    sizes = [port.size for port in pipeline.outputs]
    calling = calls("regions", sizes, [[row] for row in rows])
    found = run_javascript(f"{LIBRARY}{text}\nfinish({calling});", tmp_path)
    for k, expected in enumerate(wanted):
        ours = np.array([row[k] for row in found]).reshape(expected.shape)
        np.testing.assert_allclose(ours, expected, 1e-13, 1e-13)
    assert len(np.unique(np.isfinite(wanted[0]))) == 2
    assert len(np.unique(np.round(wanted[1], 6))) > 5


def test_an_empty_table_has_no_record(tmp_path: Path):
    pipeline, tables, rows = regions()
    tables["o"] = {"chosen": []}
    text = pipeline_function(pipeline, tables, "regions")
    calling = calls("regions", [p.size for p in pipeline.outputs], [[rows[0]]])
    found = run_javascript(f"{LIBRARY}{text}\nfinish({calling});", tmp_path)
    assert math.isnan(found[0][0][0])


def test_calls_of_other_pipelines_are_refused():
    table = Table("t", (code("what"),))
    call = Call("what", ("q",), (Port("y", ()),))
    begin = trace(lambda q: q, name="begin", outputs=("y",), q=())
    stages = (begin, Each("t", (call,)))
    pipeline = Pipeline("calling", (Port("q", ()),), (table,), stages, ("y",))
    with pytest.raises(KernelError, match="'calling' calls what its records choose"):
        pipeline_function(pipeline, {"t": {"what": np.zeros((1, 2), int)}}, "f")
