"""Program to LLVM IR: the block that computes `lanes` rows at once.

    @block(ptr in..., ptr out..., ptr scratch)

reads `lanes` compact rows of every input and writes as many of every output. It is a
line of calls to its segments, one for a short program. It returns an integer with a bit
for each lane that an operation flagged; `fallback` computes those again, slowly and
right: what a row gives does not depend on its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from armillary.kernel.intrinsics.ieee import LAYOUTS
from armillary.kernel.lowering import length_of, lower
from armillary.kernel.partition import LENGTH, Segment, cut, is_constant
from armillary.kernel.transpose import load_rows, squares_of, store_square
from armillary.kernel.vector_builder import LaneType, Value, VectorBuilder
from armillary.trace import OPS, Instruction, Program


def emit_block(program: Program, shape: LaneType) -> tuple[str, int]:
    """Return the text of @block, with all that it calls, and its scratch [bytes]."""
    # LLVM's time grows with the square of the registers that a value takes.
    registers = max(1, shape.lanes * shape.bits // 512)
    length = LENGTH // registers**2
    segments, slot_count = cut(program, _squares(program, shape.lanes), length)
    body = _body(program, shape, segments, columns=False)
    main = _main(program, shape, body)
    scratch = slot_count * shape.lanes * shape.bytes
    return "\n".join([*body.before, main]), scratch


def emit_columns(programs: Mapping[str, Program], shape: LaneType) -> str:
    """Return the text of functions that do the same computation on columns.

    @name(ptr in..., ptr out...) reads and writes one vector for each scalar of a port,
    as loops keep them that run on many problems at once. Nothing is recomputed.
    """
    before: dict[str, None] = {}
    functions: list[str] = []
    for name, program in programs.items():
        body, slot_count = _on_columns(name, program, shape)
        before.update(dict.fromkeys(body.before))
        functions += [
            f"define internal void @{name}({_pointers_text(program)}) #0 {{",
            f"  %scratch = alloca {shape.real}, i64 {max(1, slot_count)}, align 64",
            *body.lines,
            "  ret void",
            "}",
        ]
    return "\n".join([*before, *functions])


class ColumnFunction(NamedTuple):
    """A function that computes a program on columns.

    @name(ptr in..., ptr out..., ptr scratch) returns the flagged lanes as @block does.

    Attributes:
        before: What must stand before it, once in a module.
        text: Its text.
        scratch: Memory that it needs [bytes].
    """

    before: list[str]
    text: str
    scratch: int


def emit_column_function(
    name: str, program: Program, shape: LaneType
) -> ColumnFunction:
    """Return the function that computes a program on columns."""
    body, slot_count = _on_columns(name, program, shape)
    bits, parameters = f"i{shape.lanes}", _pointers_text(program, "%scratch")
    lines = [
        f"define internal {bits} @{name}({parameters}) #0 {{",
        *body.lines,
        f"  ret {bits} {body.flagged}",
        "}",
    ]
    return ColumnFunction(
        body.before, "\n".join(lines), slot_count * shape.lanes * shape.bytes
    )


def _on_columns(name: str, program: Program, shape: LaneType) -> tuple[_Body, int]:
    """Return a computation on columns and the number of slots that it needs."""
    singles = [(k,) for k in range(len(program.results))]
    segments, slot_count = cut(program, singles, COLUMNS_LENGTH)
    return _body(program, shape, segments, columns=True, name=name), slot_count


def emit_values(
    b: VectorBuilder, program: Program, inputs: Sequence[Value]
) -> list[Value]:
    """Append a program to a block and return its results.

    inputs: A value for each input scalar.
    """
    exact = exact_steps(program)
    values = _Values(b, program)
    for k, step in enumerate(program.instructions):
        if step.name == "input":
            values.known[k] = inputs[int(step.value)]
        elif step.name != "const":
            values.known[k] = _emit_step(b, program, k, values, fused=k not in exact)
    return [values[k] for k in program.results]


# A loop runs the same function again and again: longer pieces are worth their while.
COLUMNS_LENGTH = 2000


# From this many instructions on, long operations are functions: LLVM needs 10 to 20 us
# for each instruction, and repeats some of them a thousand times.
OUTLINED_FROM = 20_000


def _length(program: Program) -> int:
    """Return about how many instructions a program is."""
    names = Counter(step.name for step in program.instructions)
    return sum(
        count * length_of(OPS[name].lowering)
        for name, count in names.items()
        if name in OPS
    )


def pointers(program: Program) -> list[str]:
    """Return the names of the parameters of @block for the inputs and outputs."""
    names = [f"%in{k}" for k in range(len(program.inputs))]
    return names + [f"%out{k}" for k in range(len(program.outputs))]


def _pointers_text(program: Program, *more: str) -> str:
    """Return pointers to all arrays, and more, as parameters or arguments."""
    return ", ".join(f"ptr {name}" for name in [*pointers(program), *more])


class _Body(NamedTuple):
    """The computation as it stands in a function.

    Attributes:
        before: Declarations, and the functions of segments where there are several.
        lines: What stands in the function itself.
        flagged: The lanes that were flagged, as an integer of one bit for each.
    """

    before: list[str]
    lines: list[str]
    flagged: Value


def _body(
    program: Program,
    shape: LaneType,
    segments: Sequence[Segment],
    *,
    columns: bool,
    name: str = "block",
) -> _Body:
    """Return the segments in turn; a single one is not a function of its own."""
    declared: dict[str, str] = {}
    blocks: list[VectorBuilder] = []
    outlined = _length(program) > OUTLINED_FROM
    for segment in segments:
        b = VectorBuilder(shape, outlined=outlined)
        _emit_segment(b, program, segment, columns=columns)
        blocks.append(b)
    masks = [b.flag_mask() for b in blocks]
    for b in blocks:
        declared.update(b.declared)
    before = sorted(declared.values())
    if len(blocks) == 1:
        return _Body(before, blocks[0].lines, masks[0])
    bits = f"i{shape.lanes}"
    arguments = _pointers_text(program, "%scratch")
    lines: list[str] = []
    flagged = "0"
    for k, (b, mask) in enumerate(zip(blocks, masks, strict=True)):
        segment = f"{name}_segment{k}"
        before.append(_segment_text(b, program, segment, mask))
        lines.append(f"  %f{k} = call {bits} @{segment}({arguments})")
        lines.append(f"  %any{k} = or {bits} {flagged}, %f{k}")
        flagged = f"%any{k}"
    return _Body(before, lines, flagged)


def _squares(program: Program, lanes: int) -> list[tuple[int, ...]]:
    """Return the groups of output scalars that are written together."""
    found: list[tuple[int, ...]] = []
    start = 0
    for port in program.outputs:
        found += [
            tuple(start + k for k in square) for square in squares_of(port.size, lanes)
        ]
        start += port.size
    return found


def _emit_segment(
    b: VectorBuilder, program: Program, segment: Segment, *, columns: bool = False
) -> None:
    """Append the instructions of one segment, on rows or on columns."""
    exact = exact_steps(program)
    values = _Values(b, program)
    for step, slot in segment.loads.items():
        values.known[step] = b.load_slot("%scratch", slot, _kind(program, step))
    _load_inputs(b, program, segment, values, columns=columns)
    for k in segment.steps:
        step = program.instructions[k]
        if step.name not in {"input", "const"}:
            values.known[k] = _emit_step(b, program, k, values, fused=k not in exact)
    for step, slot in segment.stores.items():
        b.store_slot("%scratch", slot, values[step], _kind(program, step))
    for square in segment.squares:
        _store(b, program, square, values, columns=columns)


@lru_cache(maxsize=8)
def exact_steps(program: Program) -> frozenset[int]:
    """Return the instructions whose every rounding is that of the formula.

    They are what an operation with an edge is computed from. Elsewhere a product and a
    sum may be rounded as one, which is as exact; here it would make sqrt(a b - c d) of
    equal products the root of a number below zero, or send a comparison the other way.
    A loose program is known to have neither.
    """
    if program.is_loose:
        return frozenset()
    exact: set[int] = set()
    for k, step in reversed(list(enumerate(program.instructions))):
        if k in exact or (step.name in OPS and _has_edge(program, step)):
            exact.update(step.args)
    return frozenset(exact)


def _has_edge(program: Program, step: Instruction) -> bool:
    if step.name == "div":
        return not _is_away_from_zero(program, program.instructions[step.args[1]])
    return OPS[step.name].has_edge


def _is_away_from_zero(program: Program, divisor: Instruction) -> bool:
    """Tell whether it is a constant, or at least one: no pole is near."""
    if divisor.name == "max":
        sides = (program.instructions[arg] for arg in divisor.args)
        return any(is_constant(side) and side.value > 0.0 for side in sides)
    return is_constant(divisor)


def _emit_step(
    b: VectorBuilder, program: Program, k: int, values: _Values, *, fused: bool
) -> Value:
    """Append one operation; where roundings are free, x / c is x times 1 / c."""
    step = program.instructions[k]
    args = [values[arg] for arg in step.args]
    if fused and step.name == "div":
        inverse = _inverse(program.instructions[step.args[1]], b.shape)
        if inverse is not None:
            return lower(b, "mul", [args[0], b.real(inverse)], fused=True)
    return lower(b, OPS[step.name].lowering, args, fused=fused)


def _inverse(divisor: Instruction, shape: LaneType) -> float | None:
    """Return 1 / c for a constant c, where both have all their digits."""
    least = LAYOUTS[shape.bits].least_normal
    if is_constant(divisor) and 2.0 * least < abs(divisor.value) < 0.5 / least:
        return 1.0 / divisor.value
    return None


class _Values:
    """The value of each instruction; constants are written where they are used."""

    def __init__(self, b: VectorBuilder, program: Program) -> None:
        self._b = b
        self._program = program
        self.known: dict[int, Value] = {}

    def __getitem__(self, k: int) -> Value:
        value = self.known.get(k)
        if value is None:
            step = self._program.instructions[k]
            assert step.name == "const", f"%{k} is used before it is made"
            real = step.kind == "real"
            value = self._b.real(step.value) if real else self._b.truth(step.value != 0)
            self.known[k] = value
        return value


def _kind(program: Program, step: int) -> str:
    return program.instructions[step].kind


def _load_inputs(
    b: VectorBuilder,
    program: Program,
    segment: Segment,
    values: _Values,
    *,
    columns: bool,
) -> None:
    wanted = {
        int(program.instructions[k].value): k
        for k in segment.steps
        if program.instructions[k].name == "input"
    }
    start = 0
    for number, port in enumerate(program.inputs):
        needed = {p - start for p in wanted if start <= p < start + port.size}
        if needed:
            pointer = f"%in{number}"
            loaded: Mapping[int, Value] | list[Value]
            if columns:
                loaded = {e: b.load_slot(pointer, e, "real") for e in needed}
            else:
                loaded = load_rows(b, pointer, port.size, needed)
            for element in needed:
                values.known[wanted[start + element]] = loaded[element]
        start += port.size


def _store(
    b: VectorBuilder,
    program: Program,
    square: Sequence[int],
    values: _Values,
    *,
    columns: bool,
) -> None:
    start = 0
    for number, port in enumerate(program.outputs):
        if start <= square[0] < start + port.size:
            elements = [k - start for k in square]
            row = [values[program.results[k]] for k in square]
            if columns:
                b.store_slot(f"%out{number}", elements[0], row[0], "real")
                return
            store_square(b, f"%out{number}", port.size, elements, row)
            return
        start += port.size


def _segment_text(b: VectorBuilder, program: Program, name: str, mask: Value) -> str:
    """Return a segment as a function that tells which lanes were flagged."""
    names = [*pointers(program), "%scratch"]
    parameters = ", ".join(f"ptr noalias {name}" for name in names)
    bits = f"i{b.shape.lanes}"
    return "\n".join(
        [
            f"define internal {bits} @{name}({parameters}) #0 {{",
            "entry:",
            *b.lines,
            f"  ret {bits} {mask}",
            "}",
        ]
    )


def _main(program: Program, shape: LaneType, body: _Body) -> str:
    """Return @block: its segments in turn."""
    bits, parameters = f"i{shape.lanes}", _pointers_text(program, "%scratch")
    return "\n".join(
        [
            f"define internal {bits} @block({parameters}) #0 {{",
            "entry:",
            *body.lines,
            f"  ret {bits} {body.flagged}",
            "}",
        ]
    )
