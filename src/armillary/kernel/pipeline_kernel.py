"""Kernels of pipelines: compiled once, then given tables as often as they change.

What a `Call` runs are other pipelines, compiled apart, with many sets of tables:
`Callees`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import lt
from typing import TYPE_CHECKING, Any, Self, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary import forks
from armillary.errors import KernelError
from armillary.kernel.binding import (
    address_of,
    function_for_tables,
    make_function,
    nothing,
)
from armillary.kernel.fallback import new_state
from armillary.kernel.kernel import Kernel, kernel_of
from armillary.kernel.native import Native, native_of
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import (
    Abreast,
    Call,
    Dense,
    Each,
    Farthest,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
    While,
    calls_in,
    several_in,
)
from armillary.kernel.tables import Table, pack_all
from armillary.trace import Program

if TYPE_CHECKING:
    from armillary.kernel.derivatives import Mode

__all__ = [
    "Callees",
    "CompiledPipeline",
    "check_calls",
    "columns_code",
    "compile_pipeline",
    "pack",
    "words_of",
]

Array = npt.NDArray[Any]

LIKELY_ITERATIONS = 8
"""Repetitions of a `While` for which threads are planned."""

LIKELY_PIECES = 64
"""Pieces of a `Subdivide` for which threads are planned."""

LIKELY_RECORDS = 16
"""Records of the tree of a `NearestPoint` for which threads are planned."""

LIKELY_ROUNDS = 8
"""Rounds of a `LeastWidth` for which threads are planned."""

LIKELY_OPERATIONS = 100
"""Operations of a `Call` for which threads are planned."""


@final
class CompiledPipeline(msgspec.Struct, frozen=True, dict=True):
    """Machine code of a pipeline that waits for its tables.

    Attributes:
        native: The code.
        pipeline: What it computes.
    """

    native: Native
    pipeline: Pipeline

    @property
    def made_for(self) -> tuple[np.dtype[Any], int]:
        """Return the type and the lanes that it is compiled for."""
        return self.native.dtype, self.native.lanes

    def __call__(
        self,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        callees: Sequence[Callees] = (),
    ) -> Kernel:
        """Return a kernel with some tables; nothing is compiled.

        Args:
            tables: For each table an array for each of its fields, shape (count,
                *field shape); copied.
            callees: What its calls run. A kernel with calls cannot be pickled.

        Raises:
            KernelError: A table or field is missing, or points beyond what is there;
                or a call has a code that is not of `callees`.
            UnknownName: There is no such table or field.
            ShapeError: Shapes do not fit.
        """
        return self.bound(
            pack(self.pipeline, self.made_for, tables or {}, callees), callees
        )

    def bound(self, packed: Mapping[str, Array], callees: Sequence[Callees]) -> Kernel:
        """Return a kernel with the records of tables, which `pack` has checked."""
        return kernel_of(self.with_tables(packed, callees))

    def for_one(
        self,
        words: npt.NDArray[np.int64],
        owned: tuple[object, ...],
        make: Callable[[], Kernel],
    ) -> Callable[..., Any]:
        """Return what answers a single row of an array of its type.

        A kernel has an entry for each form of a call, and takes three times as long to
        make.

        Args:
            words: Where the records of tables are; see `pipeline_code.TABLE`.
            owned: What must live as long.
            make: Makes the kernel, which answers all other calls.
        """
        if not self.native.call:
            return make()
        return function_for_tables(self._for_one, address_of(words), owned, make)

    @cached_property
    def _for_one(self) -> Callable[..., Any]:
        """Return the entry of single rows, which has no tables yet."""
        code = self.native
        return make_function(
            code.call, code.dtype, nothing, code.program.name, code.owned
        )

    def with_tables(
        self, packed: Mapping[str, Array], callees: Sequence[Callees]
    ) -> Native:
        """Return the code with the records of its tables, which `pack` has checked."""
        pipeline, native = self.pipeline, self.native
        words = words_of(packed)
        counts = tuple(zip(packed, map(len, packed.values()), strict=True))
        parts = pipeline, packed, native.dtype.str, native.requested
        has_calls = bool(_calls(pipeline))
        return replace(
            native,
            operations=1 + _row_operations(pipeline, counts),
            state=new_state(address_of(words)),
            tables=packed,
            called=_CalleeFinder(tuple(callees)) if has_calls else None,
            pickled=(_restored, parts),
            owned=(*native.owned, words, *packed.values(), *callees),
        )


def pack(
    pipeline: Pipeline,
    made_for: tuple[np.dtype[Any], int],
    tables: Mapping[str, Mapping[str, Any]],
    callees: Sequence[Callees],
    known: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Return the records of the tables of a pipeline, checked.

    Arguments and errors are those of `CompiledPipeline.__call__` and `pack_all`; the
    codes of known records are of `callees`, too.
    """
    packed = pack_all(pipeline.tables, tables, pipeline.columns, made_for[0], known)
    check_packed(pipeline, packed, callees, made_for)
    return packed


def check_single(pipeline: Pipeline) -> None:
    """Refuse pipelines that must compute one row at a time.

    Raises:
        KernelError: A row chooses entries of a column.
    """
    for table in pipeline.tables:
        for field in table.fields:
            if field.by:
                raise KernelError(
                    f"'{field.name}' of '{pipeline.name}' is an entry that each row "
                    "chooses: compile it with lanes=1."
                )


def check_packed(
    pipeline: Pipeline,
    packed: Mapping[str, Array],
    callees: Sequence[Callees],
    made_for: tuple[np.dtype[Any], int],
) -> None:
    """Check the numbers of records of tables, and what calls run.

    Args:
        pipeline: The pipeline.
        packed: The records of its tables.
        callees: What its calls run.
        made_for: The type and the lanes that it is compiled for.

    Raises:
        KernelError: As for `CompiledPipeline`.
    """
    for table in pipeline.tables:
        table.check_count(len(packed[table.name]))
    for table, name in _several(pipeline):
        if (np.diff(packed[table][name].astype(np.int64)) != 1).any():
            raise KernelError(
                f"Records of '{table}' run several at once, but '{name}' of one is not "
                "one more than that of the record before."
            )
    codes = [
        (name, records[name])
        for records in packed.values()
        for name in records.dtype.names or ()
    ]
    check_calls(pipeline, codes, callees, made_for)


def compile_pipeline(
    pipeline: Pipeline,
    *,
    dtype: npt.DTypeLike = np.float64,
    lanes: int | None = None,
    derived: Callable[[Mode, tuple[str, ...]], CompiledPipeline] | None = None,
) -> CompiledPipeline:
    """Return a pipeline as native code for this machine, to be called with tables.

    Args:
        pipeline: What to compute.
        dtype: float64 or float32, the type that it computes in.
        lanes: Rows computed at once, a power of two; by default what the machine's
            registers hold.
        derived: Makes a derivative of it by some inputs, which takes the same tables.

    Raises:
        KernelError: The type, the lanes, or the pipeline's arrays have no native code.
    """
    if lanes != 1:
        check_single(pipeline)
    native = replace(native_of(pipeline, dtype, lanes), derived=derived)
    return CompiledPipeline(native, pipeline)


def _restored(
    pipeline: Pipeline, tables: Mapping[str, Array], dtype: str, requested: int
) -> Kernel:
    """Return what a pickle holds, compiled for the machine that it is read on."""
    given = {
        name: {field: records[field] for field in records.dtype.names or ()}
        for name, records in tables.items()
    }
    return compile_pipeline(pipeline, dtype=dtype, lanes=requested or None)(given)


@lru_cache(maxsize=64)
def _calls(pipeline: Pipeline) -> tuple[Call, ...]:
    return tuple(calls_in(pipeline.stages))


@lru_cache(maxsize=64)
def _several(pipeline: Pipeline) -> tuple[tuple[str, str], ...]:
    return tuple(several_in(pipeline.stages))


@lru_cache(maxsize=64)
def _row_operations(pipeline: Pipeline, counts: tuple[tuple[str, int], ...]) -> int:
    """Return about how many operations a row takes, with so many records."""
    return _operations(pipeline.stages, dict(counts), 1)


def _operations(stages: Sequence[Stage], counts: Mapping[str, int], around: int) -> int:
    """Return about how many operations a row takes.

    Args:
        stages: The stages.
        counts: Records of each table.
        around: Records of the table of the region around the stages.
    """
    total = 0
    for stage in stages:
        match stage:
            case Program():
                total += stage.operation_count
            case Call() | Farthest():
                total += LIKELY_OPERATIONS
            case Dense():
                # Products of matrices of n rows; their halves have about n^2 numbers.
                total += sum(port.size for port in stage.outputs) ** 2 // 8
            case Each():
                # All records, or those of one range of the record around.
                count = counts[stage.table]
                if stage.within:  # each record around it has its share
                    count = -(-count // max(1, around))
                total += count * _operations(stage.stages, counts, count)
            case Abreast():
                count = counts[stage.table]
                total += count * _operations(stage.stages, counts, count)
            case While():
                likely = min(stage.limit, LIKELY_ITERATIONS)
                total += likely * _operations(stage.stages, counts, around)
            case Subdivide():
                total += LIKELY_PIECES * _operations(stage.stages, counts, around)
            case NearestPoint():
                total += LIKELY_RECORDS * _operations(stage.stages, counts, around)
            case LeastWidth():
                total += LIKELY_ROUNDS * _operations(stage.stages, counts, around)
            case _:
                total += _operations(stage.stages, counts, around)
    return total


@final
class Callees(msgspec.Struct, frozen=True, eq=False):
    """A pipeline that others call, with several sets of tables.

    Attributes:
        pipeline: What is called.
        tables: Records of its tables, of all sets.
        words: The address of the tables of each set, and their numbers of records; see
            `pipeline_code.TABLE`: shape (sets, tables, 2).
        codes: What a field of kind `code` holds for each set, shape (sets, 2).
        code: Its machine code, which lives as long as this.
        made_for: The type and lanes that callers have.
    """

    pipeline: Pipeline
    tables: Mapping[str, Array]
    words: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    code: object
    made_for: tuple[np.dtype[Any], int]

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        tables: Mapping[str, Mapping[str, Any]],
        spans: Mapping[str, npt.ArrayLike],
        *,
        dtype: np.dtype[Any],
        lanes: int,
        constant: Mapping[str, Array] | None = None,
    ) -> Self:
        """Compile a pipeline, unless that is done, and give it tables.

        Args:
            pipeline: What is called.
            tables: For each table an array for each field, of all sets one behind the
                other.
            constant: Records of other tables, as `pack_all` returns them.
            spans: For each table the first record and the count of each set, shape
                (sets, 2), or (2,) where all sets share records; none for those that
                callers give.
            dtype: The type that callers compute in.
            lanes: The number of rows that they compute at once.

        Raises:
            KernelError: As for `CompiledPipeline`.
        """
        # Where callers give records, there are none here.
        nothing = np.zeros(0, np.int64)
        known = {**(constant or {}), **dict.fromkeys(pipeline.given, nothing)}
        rest = [table for table in pipeline.tables if table.name not in known]
        found = {**known, **pack_all(rest, tables, pipeline.columns, dtype)}
        packed = {table.name: found[table.name] for table in pipeline.tables}
        where = {**spans, **dict.fromkeys(pipeline.given, (0, 0))}
        ranges = [np.atleast_2d(np.asarray(where[name], np.int64)) for name in packed]
        for table, span in zip(pipeline.tables, ranges, strict=True):
            is_own = table.is_single and table.name not in pipeline.given
            if is_own and len(span) and not (span[:, 1] == 1).all():
                table.check_count(int(span[span[:, 1] != 1, 1][0]))
        # See `pipeline_code.TABLE`: where the records of a set start, and how many.
        count = max(map(len, ranges), default=1)
        words = np.zeros((count, max(1, len(packed)), 2), np.int64)
        for k, (records, span) in enumerate(zip(packed.values(), ranges, strict=True)):
            np.multiply(span[:, 0], records.dtype.itemsize, out=words[:, k, 0])
            words[:, k, 0] += address_of(records)
            words[:, k, 1] = span[:, 1]
        code, entry = columns_code(pipeline, dtype.itemsize * 8, lanes)
        # What a `Call` loads: the address of the code, and that of the words of the
        # set.
        codes = np.empty((count, 2), np.int64)
        codes[:, 0] = entry
        codes[:, 1] = np.arange(count)
        codes[:, 1] *= words[:1].nbytes
        codes[:, 1] += address_of(words)
        return cls(pipeline, packed, words, codes, code, (dtype, lanes))

    def has(self, codes: Array) -> npt.NDArray[np.bool_]:
        """Return which codes are of one of its sets: (n, 2) -> (n,)."""
        return self.sets_of(codes) >= 0

    def sets_of(self, codes: Array) -> npt.NDArray[np.int64]:
        """Return of which of its sets codes are, else -1: (n, 2) -> (n,)."""
        if not len(self.codes):
            return np.full(len(codes), -1)
        number, rest = np.divmod(
            codes[:, 1] - self.codes[0, 1], max(1, self.words[:1].nbytes)
        )
        is_set = (number >= 0) & (number < len(self.codes)) & (rest == 0)
        return np.where(is_set & (codes[:, 0] == self.codes[0, 0]), number, -1)

    @property
    def spans(self) -> npt.NDArray[np.int64]:
        """Return the first record and the count of each set, (sets, tables, 2)."""
        spans = self.words[:, : len(self.tables)].copy()
        for k, records in enumerate(self.tables.values()):
            spans[:, k, 0] -= address_of(records)
            spans[:, k, 0] //= records.dtype.itemsize
        return spans

    def set_at(self, address: int) -> dict[str, Array] | None:
        """Return the tables of the set that lies at an address, if there is one."""
        beyond = address - address_of(self.words)
        if not 0 <= beyond < self.words.nbytes:
            return None
        words = self.words[beyond // self.words[:1].nbytes, : len(self.tables)].tolist()
        tables: dict[str, Array] = {}
        for (name, records), (start, count) in zip(
            self.tables.items(), words, strict=True
        ):
            first = (start - address_of(records)) // records.dtype.itemsize
            tables[name] = records[first : first + count]
        return tables


@final
class _CalleeFinder(msgspec.Struct, frozen=True):
    """Finds what addresses are: see `pipeline_reference.Called`."""

    callees: tuple[Callees, ...]

    def __call__(self, code: Array) -> tuple[Pipeline, Mapping[str, Array]]:
        first, second = code.tolist()
        for callees in self.callees:
            tables = callees.set_at(second)
            if tables is not None and first == callees.codes[0, 0]:
                return callees.pipeline, tables
        raise KernelError("A call has an address that is not of one of its callees.")


def check_calls(
    pipeline: Pipeline,
    fields: Sequence[tuple[str, Array]],
    callees: Sequence[Callees],
    made_for: tuple[np.dtype[Any], int],
) -> None:
    """Check what calls of a pipeline run, every address in some records.

    Args:
        pipeline: The pipeline.
        fields: The names and values of fields of records.
        callees: What the codes among them are of.
        made_for: The type and the lanes that it is compiled for.

    Raises:
        KernelError: A code is not one of `callees`, or they take or return something
            else than is given.
    """
    # Machine code jumps to what a record says: each address must be one of a set of the
    # callees.
    for call in _calls(pipeline):
        for codes in (values for name, values in fields if name == call.code):
            is_known = np.zeros(len(codes), np.bool_)
            for each in callees:
                is_known |= each.has(codes)
            if not is_known.all():
                raise KernelError(
                    f"'{call.code}' of '{pipeline.name}' is not a code of what it is "
                    "given to call."
                )
        for each in callees:
            fault = ""
            if each.made_for != made_for:
                fault = "it is not made for the same type and lanes"
            fault = fault or _fault(pipeline, call, each.pipeline)
            if fault:
                raise KernelError(
                    f"'{pipeline.name}' cannot call '{each.pipeline.name}': {fault}."
                )


@lru_cache(maxsize=1024)
def _fault(pipeline: Pipeline, call: Call, callee: Pipeline) -> str:
    """Return why a call cannot run a pipeline; empty where it can."""
    inputs = [pipeline.shape_of(name) for name in call.inputs]
    outputs = [port.shape for port in call.outputs]
    takes = [port.shape for port in callee.inputs]
    returns = [port.shape for port in callee.outputs]
    if (takes, returns) != (inputs, outputs):
        return (
            f"it gives {inputs} and expects {outputs}, not {takes} for {returns}, in "
            "the same type and lanes"
        )
    # What callers give must begin with what is read of it.
    sources = [_size_of(pipeline, name) for name in call.given]
    sizes = [_numbers_in(callee.table(name)) for name in callee.given]
    if len(sources) != len(sizes) or any(map(lt, sources, sizes)):
        return f"it gives records of {sources} numbers, where {sizes} are needed"
    return ""


def _size_of(pipeline: Pipeline, field: str) -> int:
    """Return how many numbers the records have that a field leads to."""
    fields = (one for table in pipeline.tables for one in table.fields)
    (found,) = (one for one in fields if one.name == field)
    return _numbers_in(pipeline.table(found.of))


def _numbers_in(table: Table) -> int:
    """Return how many numbers a record has, 0 where it has anything else."""
    if any(field.kind != "real" for field in table.fields):
        return 0
    return sum(math.prod(field.shape) for field in table.fields)


def words_of(packed: Mapping[str, Array]) -> npt.NDArray[np.int64]:
    """Return where records of tables are, and how many; see `pipeline_code.TABLE`."""
    pairs = [(address_of(records), len(records)) for records in packed.values()]
    return np.array(pairs, np.int64).reshape(-1, 2)


@lru_cache(maxsize=256)
def columns_code(pipeline: Pipeline, bits: int, lanes: int) -> tuple[Any, int]:
    """Return the code that works on columns, and its address."""
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler  # imports LLVM
    code = compiler.compiled_columns(pipeline, bits, lanes)
    return code, code.address("columns")
