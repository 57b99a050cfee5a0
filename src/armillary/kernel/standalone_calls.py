"""What a `Call` runs, in modules that hold no addresses: one function that chooses.

    iN @dispatcher(ptr in..., ptr out..., ptr given..., iN active, i64 callee, i64 set)

In this process the records around a call have two addresses, of code and of its tables.
In a module of its own they have two numbers: which of the callees, and which set of its
tables. So constants need no relocations, and C, WebAssembly and GPUs take them, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.kernel.block_rows import ALIGNMENT
from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I64, PTR, Type, bits_of_lanes
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_code import TABLE, column_code
from armillary.kernel.stages import calls_in

__all__ = [
    "GLOBAL",
    "CalledCode",
    "DispatchCode",
    "constant_name",
    "dispatch_code",
    "numbered_tables",
]

Array = npt.NDArray[Any]

GLOBAL: Final = re.compile(r"@(?!llvm\.)([\w.]+)")
"""A name in a module, except those of functions of LLVM."""


class CalledCode(Protocol):
    """What is asked of `pipeline_kernel.Callees`."""

    @property
    def pipeline(self) -> Pipeline:
        """Return what is called."""
        ...

    @property
    def tables(self) -> Mapping[str, Array]:
        """Return the records of its tables, of all sets."""
        ...

    @property
    def spans(self) -> npt.NDArray[np.int64]:
        """Return the first record and the count of each set, (sets, tables, 2)."""
        ...

    def sets_of(self, codes: Array) -> npt.NDArray[np.int64]:
        """Return of which of its sets codes are, else -1: (n, 2) -> (n,)."""
        ...


def constant_name(data: bytes) -> str:
    """Return the name of a constant, the same for the same bytes."""
    return f"data_{hashlib.sha256(data).hexdigest()[:16]}"


def numbered_tables(
    pipeline: Pipeline, tables: Mapping[str, Array], callees: Sequence[CalledCode]
) -> dict[str, Array]:
    """Return the records of tables with numbers of callees in place of addresses."""
    made = dict(tables)
    for table in pipeline.tables:
        names = [field.name for field in table.fields if field.kind == "code"]
        if not names:
            continue
        records = tables[table.name].copy()
        for name in names:
            numbers = np.full(records[name].shape, -1, np.int64)
            for k, each in enumerate(callees):
                chosen = each.sets_of(records[name])
                numbers[chosen >= 0, 0] = k
                numbers[chosen >= 0, 1] = chosen[chosen >= 0]
            assert (numbers >= 0).all(), "checked when records were packed"
            records[name] = numbers
        made[table.name] = records
    return made


@final
@dataclass(frozen=True, slots=True, eq=False)
class DispatchCode:
    """The functions that calls need.

    Attributes:
        texts: The functions, the one that chooses last.
        declared: What they need of LLVM, by name.
        constants: What they refer to.
    """

    texts: tuple[str, ...]
    declared: Mapping[str, str]
    constants: frozenset[bytes]


def dispatch_code(
    pipeline: Pipeline, callees: Sequence[CalledCode], real: Type, prefix: str
) -> DispatchCode:
    """Return the function `{prefix}callees` of a pipeline, and what it calls.

    Args:
        pipeline: Whose calls they are; all of them give and expect the same.
        callees: What they run, by number.
        real: The type of a vector with a lane for each row.
        prefix: What the names of functions begin with.

    Raises:
        KernelError: What is called has calls itself.
    """
    call, *_ = calls_in(pipeline.stages)
    declared: dict[str, str] = {}
    texts: dict[str, str] = {}
    # CalledCode of one pipeline, with different tables, share its code.
    entries: dict[Pipeline, str] = {}
    for each in callees:
        if each.pipeline in entries:
            continue
        if any(calls_in(each.pipeline.stages)):
            raise KernelError(
                f"'{each.pipeline.name}' is called and calls others, which is not "
                "compiled for elsewhere."
            )
        own = f"{prefix}c{len(entries)}_"
        entries[each.pipeline] = f"@{own}columns"
        for f in column_code(each.pipeline, real):
            for name, text in (*f.declared.items(), (f"@{f.name}", f.text)):
                if name.startswith("@llvm."):
                    declared[name] = text
                    continue
                local = text.replace("define internal", "define", 1)
                local = local.replace("define ", "define internal ", 1)
                texts[f"{own}{name[1:]}"] = GLOBAL.sub(rf"@{own}\1", local)
    constants: set[bytes] = set()
    names = [f"in{k}" for k in range(len(call.inputs))]
    names += [f"out{k}" for k in range(len(call.outputs))]
    names += [f"given{k}" for k in range(len(call.given))]
    mask = bits_of_lanes(real.lanes)
    more = {**dict.fromkeys(names, PTR), "active": mask, "callee": I64, "set": I64}
    f = FunctionBuilder(f"{prefix}callees", mask, more=more)
    flagged = f.variable(mask, 0)
    for k, each in enumerate(callees):
        with f.when(f["callee"].equals(k)):
            tables = _words(f, each, constants)
            arguments = (*(f[name] for name in names), tables, f["active"])
            flagged.set(f.call(entries[each.pipeline], mask, *arguments))
    f.ret(flagged.get())
    return DispatchCode((*texts.values(), f.text), declared, frozenset(constants))


def _words(f: FunctionBuilder, callees: CalledCode, constants: set[bytes]) -> Value:
    """Return where the words of the tables of a set are, made on the stack."""
    own = [
        (k, records)
        for k, (name, records) in enumerate(callees.tables.items())
        if name not in callees.pipeline.given
    ]
    if not own:
        return f.constant(PTR, 0)
    words = f.reserve(TABLE.bytes * len(callees.tables), ALIGNMENT)
    spans = callees.spans.astype("<i8")
    data = spans.tobytes()
    constants.add(data)
    of_sets = Value(f, f"@{constant_name(data)}", PTR)
    start = f.element(of_sets, I64, f["set"] * spans[0].size)
    for k, records in own:
        data = records.tobytes()
        constants.add(data)
        first, count = f.load(I64, start, 2 * k), f.load(I64, start, 2 * k + 1)
        base = Value(f, f"@{constant_name(data)}", PTR)
        entry = f.address(words, TABLE.bytes * k)
        TABLE.store(f.address(base, first * records.dtype.itemsize), entry, "records")
        TABLE.store(count, entry, "count")
    return words
