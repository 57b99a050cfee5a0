"""Stages made of the signatures of formulas are those made by hand."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from armillary.errors import KernelError, UnknownName
from armillary.kernel.columns import (
    Column,
    Columns,
    Numbered,
    call,
    each,
    index_field,
    number_field,
    repeat,
    when,
)
from armillary.kernel.packed import Packed, Part
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import Call, Each, When, While, program
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Port, evaluate


class SpeedColumns(Columns):
    low = Column("least rates of joints", "c", unit="rad/s")
    high = Column("greatest rates of joints", "c", unit="rad/s")
    x = Column("rates of joints", "c", unit="rad/s")
    scale = Column("part of the rates")
    plane = Column("a plane of rates", "plane")
    rows = Numbered("rows of a task", "m", "c")
    total = Column("sum of rows times rates")


class Plane(Packed):
    slopes = Part("a", "c")
    bound = Part("b")


class Slab(Plane):
    frame = Part("axes", 2, 2)


class Bounds(NamedTuple):
    low: Any
    high: Any


class Scaled(NamedTuple):
    x: Any
    scale: Any


def scaled(x: Any, bounds: Bounds, scale: Any) -> Scaled:
    return Scaled([b * scale - a for a, b in zip(*bounds, strict=True)], scale + x[0])


def by_hand(x: Any, low: Any, high: Any, scale: Any) -> Any:
    return [b * scale - a for a, b in zip(low, high, strict=True)], scale + x[0]


def shifted(x: Any, scale: Any = 2.0, *, by: float = 0.0) -> Any:
    return [a * scale + by for a in x]


def all_rows(x: Any, rows: Any) -> Any:
    return sum(row[0] * x[0] for block in rows for row in block)


def test_parameters_are_columns_and_results_are_fields():
    c = (3,)
    expected = program(by_hand, "x scale", x=c, low=c, high=c, scale=())
    assert SpeedColumns(c=3).stage(scaled).fingerprint == expected.fingerprint


def test_what_a_signature_leaves_open_is_passed():
    columns = SpeedColumns(c=2)
    made = columns.stage(
        partial(shifted, by=1.0), x=columns.low, scale=None, writes=columns.high
    )
    assert made.inputs == (Port("low", (2,)),)
    assert made.outputs == (Port("high", (2,)),)
    rows = [columns.rows(k, m=k + 1) for k in range(2)]
    made = columns.stage(all_rows, rows=rows, writes=columns.total)
    assert made.inputs[1:] == (Port("rows_0", (1, 2)), Port("rows_1", (2, 2)))


def lowered(plane: Slab, scale: Any) -> Slab:
    return plane.replaced(bound=plane.bound - scale * plane.frame[1][0])


def room(x: Any, plane: Plane) -> Any:
    return sum((a * b for a, b in zip(plane.slopes, x, strict=True)), 0.0) - plane.bound


def test_a_packed_column_has_named_parts():
    columns = SpeedColumns(c=2, plane=Slab.size(c=2))
    assert columns.plane.shape == (7,)
    made = columns.stage(lowered, writes=columns.plane)
    np.testing.assert_array_equal(
        evaluate(made, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.5]),
        [1.0, 2.0, 0.0, 4.0, 5.0, 6.0, 7.0],
    )
    # The size of the columns tells what stands behind the parts that are read.
    made = columns.stage(room, writes=columns.scale)
    assert evaluate(made, [10.0, 20.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]) == [47.0]


def test_parts_of_arrays_are_views():
    numbers = np.zeros((3, 7))
    slab = Slab(numbers)
    slab.frame, slab.bound, slab.slopes = np.eye(2), [1.0, 2.0, 3.0], 5.0
    np.testing.assert_array_equal(numbers[1], [5.0, 5.0, 2.0, 1.0, 0.0, 0.0, 1.0])
    assert slab.frame.shape == (3, 2, 2)
    with pytest.raises(KernelError, match="Slab does not have 4 numbers"):
        Slab(numbers[0, :4])
    with pytest.raises(KernelError, match="Plane needs the part 'bound'"):
        Plane.of(slopes=[1.0])
    with pytest.raises(UnknownName, match="slopes"):
        Plane.of(slope=[1.0], bound=2.0)


def test_a_pipeline_of_stages_computes():
    columns = SpeedColumns(c=2)
    inputs = columns.x, columns.low, columns.high, columns.scale
    stages = (when(columns.scale, columns.stage(scaled)),)
    kernel = compile_pipeline(Pipeline("speed", inputs, (), stages, ("x", "scale")))({})
    x, scale = kernel([1.0, 2.0], [0.5, 0.5], [3.0, 4.0], 2.0)
    np.testing.assert_array_equal(x, [5.5, 7.5])
    assert scale == 3.0


def test_regions_and_fields_are_those_of_names():
    columns = SpeedColumns(c=2)
    stage = columns.stage(scaled)
    table = Table("t", (number_field(columns.low), index_field(columns.x, columns.low)))
    assert table.fields == (reals("low", (2,)), index("x", "low"))
    assert each(table, stage, active=columns.scale) == Each("t", (stage,), "", "scale")
    assert when(columns.scale, stage) == When("scale", (stage,))
    assert repeat(columns.scale, stage, limit=3) == While("scale", (stage,), 3)
    made = call("distance", (columns.low,), (columns.high,))
    assert made == Call("distance", ("low",), (Port("high", (2,)),))


def wrong_shape(x: Any, scale: Any) -> Scaled:
    return Scaled(x[0], scale)


def strange(xx: Any) -> Scaled:
    return Scaled(xx, xx)


def test_faults_name_formula_and_column():
    columns = SpeedColumns(c=2)
    with pytest.raises(UnknownName, match=r"no column named 'xx' in SpeedColumns"):
        columns.stage(strange)
    with pytest.raises(KernelError, match=r"'shifted' does not say what it writes"):
        columns.stage(shifted)
    with pytest.raises(KernelError, match=r"'wrong_shape' returns 'x' .* \(\); .*\(2,"):
        columns.stage(wrong_shape)
    with pytest.raises(UnknownName, match=r"no parameter named 'y'"):
        columns.stage(scaled, y=None)
    with pytest.raises(KernelError, match=r"'low' .* size 'c', which is missing"):
        _ = SpeedColumns().low
    assert [one.name for one in columns.declared()][-2:] == ["rows", "total"]


class Both(NamedTuple):
    x: Any
    bounds: Bounds


def nested(both: Both, limits: Bounds | None = None) -> tuple[Any, Bounds]:
    low, high = both.bounds
    assert limits is None
    assert isinstance(both.x, list)
    return both.x[0], Bounds(high, low)


def test_groups_are_nested_and_may_be_left_out():
    columns = SpeedColumns(c=2)
    writes = (columns.scale, *columns.group(Bounds))
    made = columns.stage(nested, limits=None, writes=writes)
    assert made.inputs == columns.group(Both)
    assert made.outputs == writes


class RowColumns(Columns):
    places = Column("rows of all", 4, "c")
    row = Column("a row", "c", into="places")
    weight = Numbered("weight of a task", "shape")
    rows = Numbered("rows of a task", "m", "c", into="places")


def weighed(rows: Any, weight: Any) -> Any:
    return [[weight[0] * a for a in row] for row in rows]


def test_columns_of_a_numbered_thing_are_named_without_the_number():
    columns = RowColumns(c=2)
    third = columns.of(3, m=1, shape=(2,))
    made = third.stage(weighed, writes=third.rows())
    assert made.inputs == (Port("rows_3", (1, 2)), Port("weight_3", (2,)))
    assert columns.weight(3, shape=()) == Port("weight_3", ())
    with pytest.raises(KernelError, match=r"'weight' of RowColumns are numbered"):
        columns.weight(shape=())


def test_fields_are_positions_where_columns_say_so():
    third = RowColumns(c=2).of(3, m=1, shape=())
    made = third.table("t", third.row, third.rows(), third.weight(), index("i", "x"))
    expected = index("row", "places"), index("rows_3", "places"), reals("weight_3")
    assert made == Table("t", (*expected, index("i", "x")))
