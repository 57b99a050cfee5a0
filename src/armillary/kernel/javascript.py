"""Programs and pipelines printed as JavaScript, for pages without Python.

A program becomes one function of its inputs and then its outputs, each a
`Float64Array` of the port's size, row by row; it fills the outputs and allocates
nothing. Each operation is a row of `RULES`, whose key is its `lowering` in
`trace/ops.py`, as `lowering.py` is for machine code. The text of `LIBRARY` must stand
before, once.

A pipeline becomes what `pipeline_reference.py` computes, for one row. Its columns and
the records of tables are typed arrays that are made once. A field is a list of arrays,
one for each record: numbers, or for an index a view of the column, so that programs
read and write through it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import (
    Abreast,
    At,
    Call,
    Dense,
    Each,
    Farthest,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
    When,
    While,
)
from armillary.kernel.tables import Field, Table, pack_all
from armillary.trace import OPS, Instruction, Program
from armillary.trace.ops import type_truth

__all__ = [
    "LIBRARY",
    "literal",
    "literals",
    "pipeline_function",
    "program_function",
]

Array: TypeAlias = npt.NDArray[Any]

RULES: Final[dict[str, str]] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "sqrt": "Math.sqrt({})",
    "sin": "Math.sin({})",
    "cos": "Math.cos({})",
    "tan": "Math.tan({})",
    "asin": "Math.asin({})",
    "acos": "Math.acos({})",
    "atan": "Math.atan({})",
    "atan2": "Math.atan2({}, {})",
    "exp": "Math.exp({})",
    "log": "Math.log({})",
    "pow": "power({}, {})",
    "hypot": "hypotenuse({}, {})",
    "abs": "Math.abs({})",
    "sign": "Math.sign({})",
    "min": "Math.min({}, {})",
    "max": "Math.max({}, {})",
    "floor": "Math.floor({})",
    "round": "nearestEven({})",
    "sinh": "Math.sinh({})",
    "cosh": "Math.cosh({})",
    "tanh": "Math.tanh({})",
    "cbrt": "Math.cbrt({})",
    "fmod": "{} % {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "eq": "{} === {}",
    "and": "{} && {}",
    "or": "{} || {}",
    "not": "!{}",
    "is_single": "false",
    "select": "{} ? {} : {}",
}
"""The expression of each operation, of arguments that are names or literals."""

LIBRARY: Final = """\
function power(x, y) { // 1 for a base of 1, and of -1 with an infinite exponent
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y);
}
function hypotenuse(x, y) { // NaN beside an infinity, too
  const a = Math.abs(x), b = Math.abs(y), most = Math.max(a, b);
  if (most === 0 || most === Infinity) return most;
  const ratio = Math.min(a, b) / most;
  return most * Math.sqrt(1 + ratio * ratio);
}
function nearestEven(x) {
  const above = Math.round(x);
  return above - x === 0.5 && above % 2 !== 0 ? above - 1 : above;
}
function records(text, count, size) { // float64, base64, as one array for each record
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const all = new Float64Array(bytes.buffer);
  const one = (_, k) => all.subarray(k * size, (k + 1) * size);
  return Array.from({ length: count }, one);
}
function chosen(at, count) { // the position of a record; `count` where there is none
  return Number.isNaN(at) || count === 0
    ? count
    : Math.floor(Math.min(Math.max(at, 0), count - 1));
}
"""
"""Functions that printed code calls."""


def program_function(program: Program, name: str) -> str:
    """Return a program as the text of a JavaScript function.

    An array may be both an input and an output: outputs are written last.

    Args:
        program: What to print.
        name: The name of the function, a JavaScript identifier.
    """
    scalars = [
        f"a{number}[{k}]"
        for number, port in enumerate(program.inputs)
        for k in range(port.size)
    ]
    shown: list[str] = []
    lines: list[str] = []
    for k, step in enumerate(program.instructions):
        if step.name == "const":
            shown.append(_constant(step))
            continue
        shown.append(f"v{k}")
        value = scalars[int(step.value)] if step.name == "input" else ""
        value = value or RULES[OPS[step.name].lowering].format(
            *(shown[arg] for arg in step.args)
        )
        lines.append(f"  const v{k} = {value};")
    results = iter(program.results)
    lines += [
        f"  r{number}[{k}] = {shown[next(results)]};"
        for number, port in enumerate(program.outputs)
        for k in range(port.size)
    ]
    arguments = [f"a{k}" for k in range(len(program.inputs))]
    arguments += [f"r{k}" for k in range(len(program.outputs))]
    head = f"function {name}({', '.join(arguments)}) {{"
    return "\n".join([head, *lines, "}"])


def literal(number: float) -> str:
    """Return a number as JavaScript writes it."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0.0 else "-Infinity"
    return repr(float(number))


def literals(numbers: npt.ArrayLike) -> str:
    """Return numbers as JavaScript writes them, row by row, separated by commas."""
    flat = np.ravel(np.asarray(numbers, np.float64))
    return ", ".join(map(literal, flat.tolist()))


def _constant(step: Instruction) -> str:
    if step.kind == type_truth:
        return "true" if step.value else "false"
    text = literal(step.value)
    return f"({text})" if text.startswith("-") else text


def pipeline_function(
    pipeline: Pipeline, tables: Mapping[str, Mapping[str, Any]], name: str
) -> str:
    """Return a pipeline with its tables as the text of a JavaScript function.

    The function takes an array for each input and then each output, and fills those.

    Args:
        pipeline: What to print.
        tables: For each table an array for each of its fields.
        name: The name of the function, a JavaScript identifier.

    Raises:
        KernelError: The pipeline calls others, which only machine code can; or a table
            does not fit.
        UnknownName: There is no such table or field.
        ShapeError: Shapes do not fit.
    """
    packed = pack_all(pipeline.tables, tables, pipeline.columns, np.dtype(np.float64))
    for table in pipeline.tables:
        table.check_count(len(packed[table.name]))
    return _Printer(pipeline, packed).text(name)


@dataclass(slots=True)
class _Printer:
    """A pipeline being printed.

    Attributes:
        pipeline: What is printed.
        tables: The records of each table.
        names: The JavaScript name of each column.
        programs: The JavaScript name of each program, by its fingerprint.
        depth: The number of regions around what is printed.
        records: For each field around that the name of the record's position.
    """

    pipeline: Pipeline
    tables: Mapping[str, Array]
    names: dict[str, str] = field(init=False)
    programs: dict[str, str] = field(default_factory=dict[str, str])
    depth: int = 0
    records: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.names = {name: f"c{k}" for k, name in enumerate(self.pipeline.columns)}

    def text(self, name: str) -> str:
        pipeline, names = self.pipeline, self.names
        functions: list[str] = []
        for program in pipeline.programs:
            if program.fingerprint not in self.programs:
                part = f"{name}Part{len(functions)}"
                self.programs[program.fingerprint] = part
                functions.append(program_function(program, part))
        columns = [
            f"const {names[column]} = new Float64Array({math.prod(shape)});"
            for column, shape in pipeline.columns.items()
        ]
        fields = [
            f"const {one.name}_ = {self._values(table, one)};"
            for table in pipeline.tables
            for one in table.fields
        ]
        # Columns and tables are made once, when the page is loaded; the function that
        # is returned copies its arguments into columns, runs the stages and copies
        # results.
        arguments = [f"a{k}" for k in range(len(pipeline.inputs))]
        arguments += [f"r{k}" for k in range(len(pipeline.outputs))]
        body = [f"{names[p.name]}.set(a{k});" for k, p in enumerate(pipeline.inputs)]
        body += [f"{names[port.name]}.fill(NaN);" for port in pipeline.scratch]
        body += self._stages(pipeline.stages)
        body += [f"r{k}.set({names[p.name]});" for k, p in enumerate(pipeline.outputs)]
        run = [f"return function ({', '.join(arguments)}) {{", *_inner(body), "};"]
        inner = [*functions, *columns, *fields, *run]
        return "\n".join([f"const {name} = (() => {{", *_inner(inner), "})();"])

    def _values(self, table: Table, one: Field) -> str:
        """Return the list of arrays of a field; of numbers, one more is NaN."""
        values = self.tables[table.name][one.name]
        if one.by:
            raise KernelError(
                f"The pipeline '{self.pipeline.name}' has entries that rows choose, "
                "which cannot be printed as JavaScript."
            )
        if one.kind == "index":
            column, size = (
                self.names[one.of],
                math.prod(self.pipeline.shape_of(one.name)),
            )
            views = f"{column}.subarray(k * {size}, (k + 1) * {size})"
            return f"{values.tolist()}.map((k) => {views})"
        size = math.prod(one.shape)
        # The record behind the last is NaN: it is what an `At` reads where its position
        # is NaN, or there are no records.
        numbers = np.full((len(values) + 1, size), np.nan)
        numbers[:-1] = values.reshape(len(values), size)
        text = base64.b64encode(numbers.astype("<f8").tobytes()).decode()
        return f'records("{text}", {len(numbers)}, {size})'

    def _stages(self, stages: Sequence[Stage]) -> list[str]:
        return [line for stage in stages for line in self._stage(stage)]

    def _stage(self, stage: Stage) -> Iterator[str]:
        match stage:
            case Program():
                yield self._program(stage)
            case Call():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' calls what its records "
                    "choose, which cannot be printed as JavaScript."
                )
            case Farthest():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' looks for the farthest "
                    "points of tables, which cannot be printed as JavaScript."
                )
            case Dense():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' solves equations in loops, "
                    "which cannot be printed as JavaScript."
                )
            case Each():
                yield from self._each(stage)
            case At():
                # `chosen` clips the position to the records, and gives the one of NaN
                # for NaN.
                record, at = self._record(), self.names[stage.record]
                count = len(self.tables[stage.table])
                yield f"{{ const {record} = chosen({at}[0], {count});"
                yield from self._with(stage.table, record, stage.stages)
                yield "}"
            case While():
                count, condition = self._record(), self._is_positive(stage.condition)
                limit = literal(stage.limit)
                condition = f"{count} < {limit} && {condition}"
                yield f"for (let {count} = 0; {condition}; {count}++) {{"
                yield from self._with("", count, stage.stages)
                yield "}"
            case Abreast():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' has records abreast, which "
                    "cannot be printed as JavaScript."
                )
            case Subdivide():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' divides intervals, which "
                    "cannot be printed as JavaScript."
                )
            case NearestPoint():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' searches a tree of balls, "
                    "which cannot be printed as JavaScript."
                )
            case LeastWidth():
                raise KernelError(
                    f"The pipeline '{self.pipeline.name}' grows a polytope, which "
                    "cannot be printed as JavaScript."
                )
            case When():
                yield f"if ({self._is_positive(stage.condition)}) {{"
                yield from _inner(self._stages(stage.stages))
                yield "}"

    def _each(self, each: Each) -> Iterator[str]:
        record, end = self._record(), str(len(self.tables[each.table]))
        begin = "0"
        if each.within:
            # A range is the number of its first record and a count.
            span = f"{each.within}_[{self.records[each.within]}]"
            begin, end = f"{span}[0]", f"{span}[0] + {span}[1]"
        more = f" && {self._is_positive(each.active)}" if each.active else ""
        yield f"for (let {record} = {begin}; {record} < {end}{more}; {record}++) {{"
        yield from self._with(each.table, record, each.stages)
        yield "}"

    def _with(self, table: str, record: str, stages: Sequence[Stage]) -> list[str]:
        """Return the text of stages inside of a record of a table, if one is named."""
        around, self.depth = self.records, self.depth + 1
        if table:
            fields = self.pipeline.table(table).fields
            self.records = {**around, **{one.name: record for one in fields}}
        lines = _inner(self._stages(stages))
        self.records, self.depth = around, self.depth - 1
        return lines

    def _record(self) -> str:
        return f"k{self.depth}"

    def _is_positive(self, column: str) -> str:
        return f"{self.names[column]}[0] > 0"

    def _program(self, program: Program) -> str:
        ports = (*program.inputs, *program.outputs)
        arrays = ", ".join(self._array(port.name) for port in ports)
        return f"{self.programs[program.fingerprint]}({arrays});"

    def _array(self, name: str) -> str:
        """Return the array of a column, or of a field of a record around."""
        if name in self.records:
            return f"{name}_[{self.records[name]}]"
        return self.names[name]


def _inner(lines: Sequence[str]) -> list[str]:
    return [indent(line, "  ") for line in lines]
