"""Program to LLVM IR: the block that computes `lanes` rows at once.

    @block(ptr in..., ptr out..., ptr context)

reads `lanes` compact rows of every input and writes as many of every output. It is one
straight line, but for its end: where an operation flagged a lane, the block is handed
to the function at `context`, which computes it again, slowly and right.
"""

from __future__ import annotations

from armillary.kernel.block import Block, Shape, Value
from armillary.kernel.lowering import lower
from armillary.kernel.rows import load_rows, store_rows
from armillary.trace import OPS, Port, Program


def emit_block(program: Program, shape: Shape) -> str:
    """Return the text of @block for `program`, with the declarations it needs."""
    b = Block(shape)
    values = _compute(b, program)
    done = 0
    for k, port in enumerate(program.outputs):
        results = program.results[done : done + port.size]
        store_rows(b, f"%out{k}", [values[result] for result in results])
        done += port.size
    tail = _recompute(b, program) if b.flagged is not None else "  ret void\n}"
    header = f"define internal void @block({signature(program)}) {{\nentry:"
    return "\n".join([*sorted(b.declared.values()), header, *b.lines, tail])


def signature(program: Program, prefix: str = "ptr noalias ") -> str:
    """Return the parameters of @block."""
    names = [f"%in{k}" for k in range(len(program.inputs))]
    names += [f"%out{k}" for k in range(len(program.outputs))]
    return ", ".join([*(prefix + name for name in names), "ptr %context"])


def _compute(b: Block, program: Program) -> list[Value]:
    loaded = iter(_load(b, program))
    inputs = list(loaded)
    values: list[Value] = []
    for step in program.instructions:
        if step.name == "input":
            values.append(inputs[int(step.value)])
        elif step.name == "const":
            constant = (
                b.real(step.value) if step.kind == "real" else b.truth(step.value != 0)
            )
            values.append(constant)
        else:
            args = [values[arg] for arg in step.args]
            values.append(lower(b, OPS[step.name].lowering, args))
    return values


def _load(b: Block, program: Program) -> list[Value]:
    used = {int(s.value) for s in program.instructions if s.name == "input"}
    values: list[Value] = []
    for k, port in enumerate(program.inputs):
        start = len(values)
        needed = {e for e in range(port.size) if start + e in used}
        values += load_rows(b, f"%in{k}", port.size, needed)
    return values


def _recompute(b: Block, program: Program) -> str:
    """Return the end of a block that may have flagged lanes."""
    flagged = b.flagged
    lines: list[str] = []
    if b.shape.lanes > 1:
        name = f"@llvm.vector.reduce.or.v{b.shape.lanes}i1"
        b.declared[name] = f"declare i1 {name}({b.shape.truth})"
        lines.append(f"  %any = call i1 {name}({b.shape.truth} {flagged})")
        flagged = "%any"
    ports: list[Port] = [*program.inputs, *program.outputs]
    names = [f"%in{k}" for k in range(len(program.inputs))]
    names += [f"%out{k}" for k in range(len(program.outputs))]
    lines += [
        f"  br i1 {flagged}, label %again, label %done, !prof !0",
        "done:",
        "  ret void",
        "again:",
        f"  %rows = alloca ptr, i64 {len(ports)}",
    ]
    for k, name in enumerate(names):
        lines.append(f"  %row{k} = getelementptr ptr, ptr %rows, i64 {k}")
        lines.append(f"  store ptr {name}, ptr %row{k}")
    lines += [
        "  %exact = load ptr, ptr %context",
        "  call void %exact(ptr %rows)",
        "  ret void",
        "}",
        '!0 = !{!"branch_weights", i32 1, i32 100000}',
    ]
    return "\n".join(lines)
