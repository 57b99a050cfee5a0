"""Program to LLVM IR: the block that computes `lanes` rows at once.

    @block(ptr in..., ptr out..., ptr scratch)

reads `lanes` compact rows of every input and writes as many of every output. It is a
line of calls to its segments, one for a short program. It returns an integer with a bit
for each lane that an operation flagged; `fallback` computes those again, slowly and
right: what a row gives does not depend on its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.intrinsics.ieee import LAYOUTS
from armillary.kernel.lowering import length_of, lower
from armillary.kernel.machine_type import I1, PTR, Type, bits_of_lanes
from armillary.kernel.memory import ALIGNMENT
from armillary.kernel.partition import LENGTH, ProgramSegment, cut, is_constant
from armillary.kernel.transpose import load_rows, squares_of, store_square
from armillary.trace import OPS, Instruction, Program
from armillary.trace.staging import SharedProgram, StagedProgram


def emit_block(program: Program, real: Type) -> tuple[list[FunctionBuilder], int]:
    """Return @block, behind what it calls, and its scratch [bytes].

    real: The values that it works on: a vector with a lane for each row.
    """
    if isinstance(program, StagedProgram):
        return _emit_parts(program, real)
    return _emit_rows("block", program, real)


def _emit_parts(
    program: StagedProgram, real: Type
) -> tuple[list[FunctionBuilder], int]:
    """Return @block of two parts, which has what the first hands over in its scratch.

    They are functions that LLVM keeps apart, so that their code, and the roundings in
    it, are those of kernels of each alone.
    """
    first, rest = program.parts
    (handed,) = first.outputs
    made: list[FunctionBuilder] = []
    sizes: list[int] = []
    for name, part in (("first", first), ("rest", rest)):
        functions, size = _emit_rows(name, part, real, hints=("noinline",))
        made += functions
        sizes.append(size)
    bits = bits_of_lanes(real.lanes)
    f = FunctionBuilder("block", bits, more=dict.fromkeys(_pointers(program), PTR))
    room = -(-handed.size * real.bytes // ALIGNMENT) * ALIGNMENT
    places = {port.name: f[f"in{k}"] for k, port in enumerate(program.inputs)}
    places[handed.name] = f["scratch"]
    scratch = f.address(f["scratch"], room)
    outputs = [f[f"out{k}"] for k in range(len(program.outputs))]
    flagged = f.constant(bits, 0)
    for name, part, to in (
        ("first", first, [f["scratch"]]),
        ("rest", rest, outputs),
    ):
        given = [places[port.name] for port in part.inputs]
        flagged |= f.call(f"@{name}", bits, *given, *to, scratch)
    f.ret(flagged)
    return [*made, f], room + max(sizes)


def _emit_rows(
    name: str, program: Program, real: Type, *, hints: Sequence[str] = ()
) -> tuple[list[FunctionBuilder], int]:
    """Return the function of a block of rows, behind what it calls, and its scratch."""
    # LLVM's time grows with the square of the registers that a value takes.
    registers = max(1, real.lanes * real.bits // 512)
    length = LENGTH // registers**2
    segments, slot_count = cut(program, _squares(program, real.lanes), length)
    functions = _functions(name, program, real, segments, columns=False, hints=hints)
    return functions, slot_count * real.bytes


def emit_columns(
    name: str, program: Program, real: Type, *, is_alone: bool = False
) -> tuple[list[FunctionBuilder], int]:
    """Return a function that does the same computation on columns, and its scratch.

    @name(ptr in..., ptr out..., ptr scratch) reads and writes one vector for each
    scalar of a port, and returns the flagged lanes as @block does.

    Args:
        name: The name of the function.
        program: What it computes.
        real: The type of a vector.
        is_alone: Whether it is for loops that compute nothing again: it returns
            nothing, and has its scratch on the stack.
    """
    # A column is a vector already: nothing is transposed, and each result is written by
    # itself.
    singles = [(k,) for k in range(len(program.results))]
    segments, slot_count = cut(program, singles, COLUMNS_LENGTH)
    scratch = slot_count * real.bytes
    own_scratch = scratch if is_alone else None
    functions = _functions(
        name, program, real, segments, columns=True, own_scratch=own_scratch
    )
    return functions, scratch


def emit_values(
    f: FunctionBuilder, program: Program, real: Type, inputs: Sequence[Value]
) -> list[Value]:
    """Append a program to a function and return its results.

    inputs: A value for each input scalar.
    """
    exact = exact_steps(program)
    values = _StepValues(f, program, real)
    for k, step in enumerate(program.instructions):
        if step.name == "input":
            values.known[k] = inputs[int(step.value)]
        elif step.name != "const":
            values.compute(k, fused=k not in exact)
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


def _arrays(program: Program) -> list[str]:
    """Return the names of the parameters of @block for the inputs and outputs."""
    names = [f"in{k}" for k in range(len(program.inputs))]
    return names + [f"out{k}" for k in range(len(program.outputs))]


def _pointers(program: Program) -> list[str]:
    """Return the names of all parameters of @block."""
    return [*_arrays(program), "scratch"]


def _functions(
    name: str,
    program: Program,
    real: Type,
    segments: Sequence[ProgramSegment],
    *,
    columns: bool,
    own_scratch: int | None = None,
    hints: Sequence[str] = (),
) -> list[FunctionBuilder]:
    """Return the function that computes segments in turn, behind those that it calls.

    A single segment stands in it.

    Args:
        name: The name of the function.
        program: What is computed.
        real: The values that it works on.
        segments: The segments of the program.
        columns: Whether arrays are columns.
        own_scratch: Scratch on the stack [bytes], of a function that returns nothing.
        hints: Attributes of that function.
    """
    outlined = _length(program) > OUTLINED_FROM
    bits, arrays = bits_of_lanes(real.lanes), _arrays(program)
    pointers = dict.fromkeys(_pointers(program), PTR)
    if own_scratch is None:
        main = FunctionBuilder(name, bits, hints=hints, more=pointers)
        scratch = main["scratch"]
    else:
        main = FunctionBuilder(name, more=dict.fromkeys(arrays, PTR))
        scratch = main.reserve(own_scratch)
    called: list[FunctionBuilder] = []
    if len(segments) == 1:
        values = _StepValues(main, program, real, outlined=outlined)
        flagged = _emit_segment(values, segments[0], scratch, columns=columns)
    else:
        flagged = main.constant(bits, 0)
        arguments = [*(main[array] for array in arrays), scratch]
        for k, segment in enumerate(segments):
            # Inputs, outputs and scratch of a long program do not overlap, so LLVM may
            # move loads across stores.
            f = FunctionBuilder(f"{name}_segment{k}", bits, noalias=True, more=pointers)
            values = _StepValues(f, program, real, outlined=outlined)
            f.ret(_emit_segment(values, segment, f["scratch"], columns=columns))
            called.append(f)
            flagged |= main.call(f"@{f.name}", bits, *arguments)
    main.ret(flagged if own_scratch is None else None)
    return [*called, main]


def _squares(program: Program, lanes: int) -> list[tuple[int, ...]]:
    """Return the groups of output scalars that are written together."""
    groups: list[tuple[int, ...]] = []
    start = 0
    for port in program.outputs:
        squares = squares_of(port.size, lanes)
        groups += [tuple(start + k for k in square) for square in squares]
        start += port.size
    return groups


def _emit_segment(
    values: _StepValues, segment: ProgramSegment, scratch: Value, *, columns: bool
) -> Value:
    """Append the instructions of one segment, on rows or on columns.

    Returns:
        The lanes that it flags, as an integer of one bit for each.
    """
    f, program, real = values.f, values.program, values.real
    exact = exact_steps(program)
    # What earlier segments left; truths wait as reals.
    for step, slot in segment.loads.items():
        value = f.load(real, scratch, slot, align=real.bytes)
        is_truth = program.instructions[step].kind == "truth"
        values.known[step] = value.differs(0.0) if is_truth else value
    _load_inputs(values, segment, columns=columns)
    for k in segment.steps:
        if program.instructions[k].name not in {"input", "const"}:
            values.compute(k, fused=k not in exact)
    # What later segments need; a vector of truths has no layout in memory of its own.
    for step, slot in segment.stores.items():
        value = values[step]
        if program.instructions[step].kind == "truth":
            value = value.select(1.0, f.constant(real, 0.0))
        f.store(value, scratch, slot, align=real.bytes)
    for square in segment.squares:
        _store(values, square, columns=columns)
    flagged = f.taken_flags()
    none = f.constant(bits_of_lanes(real.lanes), 0)
    return none if flagged is None else flagged.packed()


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
    # Backwards: all that leads to an edge is marked before what it is computed from is
    # seen.
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
    # max(x, c) with c > 0 is at least c.
    if divisor.name == "max":
        sides = (program.instructions[arg] for arg in divisor.args)
        return any(is_constant(side) and side.value > 0.0 for side in sides)
    return is_constant(divisor)


class _StepValues:
    """The value of each instruction; constants are written where they are used."""

    def __init__(
        self,
        f: FunctionBuilder,
        program: Program,
        real: Type,
        *,
        outlined: bool = False,
    ) -> None:
        self.f = f
        self.program = program
        self.real = real
        self.outlined = outlined
        self.known: dict[int, Value] = {}

    def __getitem__(self, k: int) -> Value:
        value = self.known.get(k)
        if value is None:
            step = self.program.instructions[k]
            assert step.name == "const", f"%{k} is used before it is made"
            kind = self.real if step.kind == "real" else I1.wide(self.real.lanes)
            value = self.known[k] = self.f.constant(kind, step.value)
        return value

    def compute(self, k: int, *, fused: bool) -> None:
        """Append an operation; where roundings are free, x / c is x times 1 / c."""
        step = self.program.instructions[k]
        key, args = OPS[step.name].lowering, [self[arg] for arg in step.args]
        if fused and key == "div":
            inverse = _inverse(self.program.instructions[step.args[1]], self.real)
            if inverse is not None:
                key, args[1] = "mul", self.f.constant(self.real, inverse)
        self.known[k] = lower(key, args, fused=fused, outlined=self.outlined)


def _inverse(divisor: Instruction, real: Type) -> float | None:
    """Return 1 / c for a constant c, where both have all their digits."""
    # c and 1 / c are normal numbers: a subnormal one has lost digits.
    least = LAYOUTS[real.bits].least_normal
    if is_constant(divisor) and 2.0 * least < abs(divisor.value) < 0.5 / least:
        return 1.0 / divisor.value
    return None


def _load_inputs(
    values: _StepValues, segment: ProgramSegment, *, columns: bool
) -> None:
    """Load the inputs that a segment reads first."""
    f, program, real = values.f, values.program, values.real
    shared = program.shared if isinstance(program, SharedProgram) else frozenset[str]()
    wanted = {
        int(program.instructions[k].value): k
        for k in segment.steps
        if program.instructions[k].name == "input"
    }
    start = 0
    for number, port in enumerate(program.inputs):
        # Loaded together, since a square of a row costs little more than one element.
        needed = {p - start for p in wanted if start <= p < start + port.size}
        if needed:
            pointer = f[f"in{number}"]
            if port.name in shared:
                kind = real.scalar
                loaded = {
                    e: f.load(kind, pointer, e, align=kind.bytes).splat(real.lanes)
                    for e in sorted(needed)
                }
            elif columns:
                loaded = {e: f.load(real, pointer, e, align=real.bytes) for e in needed}
            else:
                loaded = load_rows(real, pointer, port.size, needed)
            for element in needed:
                values.known[wanted[start + element]] = loaded[element]
        start += port.size


def _store(values: _StepValues, square: Sequence[int], *, columns: bool) -> None:
    """Write a group of results to the output that they belong to."""
    f, program, real = values.f, values.program, values.real
    start = 0
    for number, port in enumerate(program.outputs):
        if start <= square[0] < start + port.size:
            pointer, elements = f[f"out{number}"], [k - start for k in square]
            row = [values[program.results[k]] for k in square]
            if columns:
                f.store(row[0], pointer, elements[0], align=real.bytes)
            else:
                store_square(pointer, port.size, elements, row)
            return
        start += port.size
