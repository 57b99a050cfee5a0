"""The way in for calls that `fastcall_entry` hands on: one function for all kernels.

`@general` takes batches, `out=`, `threads=`, lists of numbers, arrays of other types
and several results. It finds shapes and the loop of a kernel in the array that is its
`self`, so it is compiled once. What it does not know, and all that is wrong, goes to
the slow callable, in Python, before anything is written.
"""

from __future__ import annotations

import math
from typing import Final

from armillary.kernel.arguments import MAX_ARRAYS, MAX_DIMENSIONS
from armillary.kernel.builder import FunctionBuilder, Value, Variable
from armillary.kernel.fallback import STATE
from armillary.kernel.fastcall_entry import field, slow_call
from armillary.kernel.machine_type import F32, F64, I32, I64, PTR, VOID
from armillary.kernel.memory import copy_bytes
from armillary.kernel.object_layout import (
    ALIGNED,
    ANY_CAST,
    COMPACT,
    COUNT,
    DATA,
    DESCRIPTION,
    DIMENSIONS,
    FLAGS,
    GENERAL_WORDS,
    HALF,
    LIST_ITEMS,
    MOST_BATCH,
    NDIM,
    NUMBER,
    PORT,
    STRIDES,
    TYPE,
    TYPE_NUMBER,
    WRITEABLE,
)

__all__ = ["MOST_OPERANDS", "general_entry"]

MOST_OPERANDS: Final = MAX_ARRAYS + 1
"""Inputs, outputs and the state of a kernel."""

LEAST_SHORT: Final = 2.0**-126
"""The least float32 with all its digits."""

MOST_SHORTENED: Final = 4096
"""So many numbers are shortened here, more by NumPy, on the way through Python."""


def general_entry() -> list[FunctionBuilder]:
    """Return @general, behind what it calls."""
    parts = _shortened_function(), _converted_function(), _bounds_function()
    return [*parts, _GeneralEntry().function()]


class _GeneralEntry:
    """@general under construction."""

    def __init__(self) -> None:
        # As for `fastcall_entry`: Python's _PyCFunctionFastWithKeywords.
        self.f = f = FunctionBuilder(
            "general", PTR, exported=True, owner=PTR, arguments=PTR, count=I64,
            keywords=PTR,
        )  # fmt: skip
        self.words = field(f["owner"], DATA, PTR)
        self.slow, self.failed = f.label(), f.label()
        self.inputs, self.outputs = self.word("inputs"), self.word("outputs")
        self.item = self.word("item")
        words = 8 * MOST_OPERANDS
        # What @loop takes: addresses, and distances between rows, then within them.
        self.addresses = f.reserve(words, 8)
        self.steps = f.reserve(words * (1 + MAX_DIMENSIONS), 8)
        self.position = f.variable(I64, self.inputs + self.outputs + 1)
        # Inputs as they are used, and results; of these the first ones are owned until
        # they are returned, as are converted inputs.
        self.arrays = f.reserve(words, 8)
        self.owned = f.reserve(words, 8)
        self.owned_count = f.variable(I64, 0)
        self.batch = f.reserve(8 * (MOST_BATCH + MAX_DIMENSIONS), 8)
        self.batch_rank = f.variable(I64, 0)
        self.rows = f.variable(I64, 1)
        self.out = f.variable(PTR, 0)
        self.state = f.reserve(STATE.bytes, 8)

    def word(self, name: str) -> Value:
        return GENERAL_WORDS.load(self.words, name)

    def type_is(self, thing: Value, name: str) -> Value:
        return field(thing, TYPE, PTR).equals(self.word(name))

    def port(self, k: Value) -> Value:
        return self.f.address(self.word("ports"), k * PORT.bytes)

    def own(self, thing: Value) -> None:
        count = self.owned_count.get()
        self.f.store(thing, self.owned, count)
        self.owned_count.set(count + 1)

    def release(self) -> None:
        """Give up all that is owned."""
        with self.f.loop(self.owned_count.get()) as k:
            self.decrement(self.f.load(PTR, self.owned, k))

    def decrement(self, thing: Value) -> None:
        self.f.call(self.word("decrement").text, VOID, thing)

    def function(self) -> FunctionBuilder:
        """Return it."""
        f = self.f
        f.guard(f["count"].equals(self.inputs), self.slow)
        with f.when(f["keywords"].differs(0)):
            self.read_keywords()
        with f.loop(self.inputs) as k:
            self.read_input(k)
        f.guard(self.rows.get() <= self.word("most_rows"), self.slow)
        self.add_state()
        given = self.out.get().differs(0)
        with f.when(given):
            self.take_results()
        with f.otherwise():
            self.make_results()
        self.compute()
        with f.when(given):
            # The caller's own array, or tuple of arrays.
            result = self.out.get()
            with f.when(self.type_is(result, "tuple_type") & self.outputs.equals(1)):
                self.out.set(f.load(PTR, f.address(result, self.word("tuple_items"))))
            f.call(self.word("increment").text, VOID, self.out.get())
            self.release()
            f.ret(self.out.get())
        self.return_results()
        f.start(self.slow)
        self.release()
        f.ret(slow_call(f, GENERAL_WORDS, self.words))
        # Python has the error; null passes it on.
        f.start(self.failed)
        self.release()
        f.ret(f.constant(PTR, 0))
        return f

    # what is given

    def read_keywords(self) -> None:
        """Note `out`, and check `threads`: so few rows are computed on one."""
        f = self.f
        names = f.address(f["keywords"], self.word("tuple_items"))
        values = f.element(f["arguments"], PTR, f["count"])
        with f.loop(field(f["keywords"], COUNT, I64)) as k:
            name, value = f.load(PTR, names, k), f.load(PTR, values, k)
            is_given = value.differs(self.word("none"))
            is_out = name.equals(self.word("out_name"))
            with f.when(is_out), f.when(is_given):
                self.out.set(value)
            with f.when(~is_out):
                # Names in a call are the very objects that the words have.
                f.guard(name.equals(self.word("threads_name")), self.slow)
                with f.when(is_given):
                    f.guard(self.type_is(value, "int_type"), self.slow)
                    overflow = f.reserve(4, 4)
                    threads = f.call(self.word("integer").text, I64, value, overflow)
                    f.guard(threads >= 1, self.slow)

    def read_input(self, k: Value) -> None:
        """Note where the rows of an input are; all batches must be of one shape."""
        f, slow = self.f, self.slow
        port = self.port(k)
        array = f.variable(PTR, f.load(PTR, f["arguments"], k))
        is_plain = f.variable(I64, 0)
        with f.when(self.type_is(array.get(), "array_type")):
            same = field(array.get(), DESCRIPTION, PTR).equals(self.word("dtype"))
            is_plain.set(same.to(I64, "zext"))
        with f.when(is_plain.get().equals(0)):
            made = f.call("@converted", PTR, self.words, port, array.get())
            with f.when(made.equals(0)):
                error = f.call(self.word("occurred").text, PTR)
                f.branch(error.equals(0), slow, self.failed)
            self.own(made)
            array.set(made)
        given = array.get()
        f.store(given, self.arrays, k)
        flags = self.flags(given)
        f.guard((flags & ALIGNED).differs(0), slow)
        rank = PORT.load(port, "rank")
        batch_rank = field(given, NDIM, I32).to(I64, "sext") - rank
        f.guard(batch_rank >= 0, slow)
        dimensions, strides = (field(given, x, PTR) for x in (DIMENSIONS, STRIDES))
        with f.loop(rank) as d:
            length = f.load(I64, dimensions, batch_rank + d)
            f.guard(length.equals(PORT.load(port, "shape", d)), slow)
            self.add_stride(f.load(I64, strides, batch_rank + d))
        f.store(field(given, DATA, PTR), self.addresses, k)
        outer = f.variable(I64, 0)
        with f.when(batch_rank > 0):
            self.read_batch(batch_rank, dimensions)
            outer.set(PORT.load(port, "bytes"))
            with f.when((flags & COMPACT).equals(0)):
                # Rows at one distance from each other, in all dimensions.
                with f.loop(batch_rank, start=f.constant(I64, 1)) as d:
                    inner = f.load(I64, strides, d) * f.load(I64, dimensions, d)
                    f.guard(inner.equals(f.load(I64, strides, d - 1)), slow)
                outer.set(f.load(I64, strides, batch_rank - 1))
        f.store(outer.get(), self.steps, k)

    def read_batch(self, rank: Value, dimensions: Value) -> None:
        """Note the shape of a batch, or compare it with what is noted."""
        f, slow = self.f, self.slow
        f.guard(rank <= self.word("most_batch"), slow)
        is_first = self.batch_rank.get().equals(0)
        with f.when(is_first):
            self.batch_rank.set(rank)
            with f.loop(rank) as d:
                length = f.load(I64, dimensions, d)
                # Each product is small enough; a batch without rows is for Python.
                f.guard(length >= 1, slow)
                f.guard(length <= self.word("most_rows"), slow)
                f.store(length, self.batch, d)
                self.rows.set(self.rows.get() * length)
                f.guard(self.rows.get() <= self.word("most_rows"), slow)
        with f.when(~is_first):
            f.guard(rank.equals(self.batch_rank.get()), slow)
            with f.loop(rank) as d:
                same = f.load(I64, dimensions, d).equals(f.load(I64, self.batch, d))
                f.guard(same, slow)

    def flags(self, array: Value) -> Value:
        return field(array, FLAGS, I32)

    def add_stride(self, stride: Value) -> None:
        self.f.store(stride, self.steps, self.position.get())
        self.position.set(self.position.get() + 1)

    def add_state(self) -> None:
        """Give @loop a copy of the state, in which it notes flagged rows."""
        f = self.f
        copy_bytes(self.state, self.word("state"), STATE.bytes)
        f.store(self.state, self.addresses, self.inputs)
        f.store(f.constant(I64, 0), self.steps, self.inputs)
        self.add_stride(f.constant(I64, 8))  # nobody reads it

    # results

    def add_result(self, k: Value, port: Value, array: Value) -> None:
        f, operand = self.f, self.inputs + k
        f.store(array, self.arrays, operand)
        f.store(field(array, DATA, PTR), self.addresses, operand + 1)
        f.store(PORT.load(port, "bytes"), self.steps, operand + 1)
        with f.loop(PORT.load(port, "rank")) as d:
            self.add_stride(PORT.load(port, "strides", d))

    def take_results(self) -> None:
        """Note the arrays of `out`, which must not overlap any other."""
        f, slow, out = self.f, self.slow, self.out.get()
        first = f.variable(PTR, self.out.address)
        with f.when(self.type_is(out, "tuple_type")):
            f.guard(field(out, COUNT, I64).equals(self.outputs), slow)
            first.set(f.address(out, self.word("tuple_items")))
        with f.otherwise():
            f.guard(self.outputs.equals(1), slow)
        with f.loop(self.outputs) as k:
            array, port = f.load(PTR, first.get(), k), self.port(self.inputs + k)
            f.guard(self.type_is(array, "array_type"), slow)
            same = field(array, DESCRIPTION, PTR).equals(self.word("dtype"))
            f.guard(same, slow)
            needed = COMPACT | ALIGNED | WRITEABLE
            f.guard((self.flags(array) & needed).equals(needed), slow)
            rank = PORT.load(port, "rank")
            ndim = field(array, NDIM, I32).to(I64, "sext")
            f.guard(ndim.equals(rank + self.batch_rank.get()), slow)
            dimensions = field(array, DIMENSIONS, PTR)
            with f.loop(self.batch_rank.get()) as d:
                same = f.load(I64, dimensions, d).equals(f.load(I64, self.batch, d))
                f.guard(same, slow)
            core = f.element(dimensions, I64, self.batch_rank.get())
            with f.loop(rank) as d:
                same = f.load(I64, core, d).equals(PORT.load(port, "shape", d))
                f.guard(same, slow)
            low = field(array, DATA, I64)
            high = low + PORT.load(port, "bytes") * self.rows.get()
            with f.loop(self.inputs + k) as other:
                bounds = f.reserve(16, 8)
                there = f.load(PTR, self.arrays, other)
                f.call("@bounds", VOID, there, self.item, bounds)
                apart = (f.load(I64, bounds, 1) <= low) | (f.load(I64, bounds) >= high)
                f.guard(apart, slow)
            self.add_result(k, port, array)

    def make_results(self) -> None:
        f = self.f
        with f.loop(self.outputs) as k:
            port = self.port(self.inputs + k)
            rank = PORT.load(port, "rank")
            core = f.element(self.batch, I64, self.batch_rank.get())
            with f.loop(rank) as d:
                f.store(PORT.load(port, "shape", d), core, d)
            ndim = (self.batch_rank.get() + rank).to(I32, "trunc")
            made = _new_array(f, self.words, ndim, self.batch)
            f.guard(made.differs(0), self.failed)
            self.own(made)
            self.add_result(k, port, made)

    def return_results(self) -> None:
        """Return the arrays that were made, a tuple of them if there are several."""
        f = self.f
        first = self.owned_count.get() - self.outputs
        with f.when(self.outputs.equals(1)):
            self.owned_count.set(first)
            self.release()
            f.ret(f.load(PTR, self.owned, first))
        made = f.call(self.word("new_tuple").text, PTR, self.outputs)
        f.guard(made.differs(0), self.failed)
        items = f.address(made, self.word("tuple_items"))
        with f.loop(self.outputs) as k:
            f.store(f.load(PTR, self.owned, first + k), items, k)
        self.owned_count.set(first)
        self.release()
        f.ret(made)

    # the kernel

    def compute(self) -> None:
        """Run @loop; flagged rows are left to the slow callable, with all others."""
        f = self.f
        rows = f.reserve(8, 8)
        f.store(self.rows.get(), rows)
        loop = self.word("loop").text
        given = self.addresses, rows, self.steps, f.constant(PTR, 0)
        is_long = self.rows.get() >= self.word("release_from")
        with f.when(is_long):
            thread = f.call(self.word("save_thread").text, PTR)
            f.call(loop, VOID, *given)
            f.call(self.word("restore_thread").text, VOID, thread)
        with f.otherwise():
            f.call(loop, VOID, *given)
        with f.when(STATE.load(self.state, "used").differs(0), unlikely=True):
            records = STATE.load(self.state, "records")
            f.call(self.word("free").text, VOID, records)
            f.jump(self.slow)


def _bounds_function() -> FunctionBuilder:
    """Return @bounds, which writes where the memory of an array begins and ends."""
    f = FunctionBuilder("bounds", hints=["noinline"], array=PTR, item=I64, to=PTR)
    array = f["array"]
    low = f.variable(I64, field(array, DATA, I64))
    high = f.variable(I64, low.get() + f["item"])
    dimensions, strides = (field(array, x, PTR) for x in (DIMENSIONS, STRIDES))
    with f.loop(field(array, NDIM, I32).to(I64, "sext")) as d:
        way = f.load(I64, strides, d) * (f.load(I64, dimensions, d) - 1)
        low.set((way < 0).select(low.get() + way, low.get()))
        high.set((way > 0).select(high.get() + way, high.get()))
    f.store(low.get(), f["to"])
    f.store(high.get(), f["to"], 1)
    f.ret()
    return f


def _converted_function() -> FunctionBuilder:
    """Return @converted, which makes an array of a kernel's type from something else.

    That is an array of integers or of shorter reals, which NumPy converts, or a number
    or a flat list or tuple of them. It returns null for anything else, and where there
    is an error.
    """
    f = FunctionBuilder(
        "converted", PTR, hints=["noinline"], words=PTR, port=PTR, thing=PTR
    )
    words, thing, port = f["words"], f["thing"], f["port"]
    nothing = f.label()
    kind = field(thing, TYPE, PTR)

    def word(name: str) -> Value:
        return GENERAL_WORDS.load(words, name)

    def call(name: str, *given: Value) -> Value:
        return f.call(word(name).text, PTR, *given)

    with f.when(kind.equals(word("array_type"))):
        is_double = field(thing, DESCRIPTION, PTR).equals(word("double_dtype"))
        with f.when(is_double & word("item").equals(4)):
            f.ret(f.call("@shortened", PTR, words, thing))
        number = field(field(thing, DESCRIPTION, PTR), TYPE_NUMBER, I32)
        number = number.to(I64, "sext")
        # No number of these can overflow, about which NumPy would warn.
        is_shorter = (number <= word("type_number")) | number.equals(HALF)
        f.guard(is_shorter & (number >= 0), nothing)
        f.call(word("increment").text, VOID, word("dtype"))  # which it takes
        needed = f.constant(I32, ALIGNED | ANY_CAST)
        f.ret(call("from_array", thing, word("dtype"), needed))
    # Lists are read as float64.
    f.guard(word("item").equals(8), nothing)
    rank, size = (PORT.load(port, name) for name in ("rank", "size"))
    items = f.variable(PTR, 0)
    single = f.reserve(8, 8)
    f.store(thing, single)
    with f.when(kind.equals(word("list_type"))):
        items.set(field(thing, LIST_ITEMS, PTR))
    with f.when(kind.equals(word("tuple_type"))):
        items.set(f.address(thing, word("tuple_items")))
    is_list = items.get().differs(0)
    with f.when(is_list):
        f.guard(rank.equals(1), nothing)
        f.guard(field(thing, COUNT, I64).equals(size), nothing)
    with f.otherwise():
        f.guard(rank.equals(0), nothing)
        items.set(single)
    shape = f.reserve(8, 8)
    f.store(size, shape)
    made = _new_array(f, words, rank.to(I32, "trunc"), shape)
    f.guard(made.differs(0), nothing)
    numbers, refused = field(made, DATA, PTR), f.label()
    with f.loop(size) as k:
        item = f.load(PTR, items.get(), k)
        f.store(_number(f, words, item, refused), numbers, k)
    f.ret(made)
    f.start(refused)
    f.call(word("decrement").text, VOID, made)
    f.jump(nothing)
    f.start(nothing)
    f.ret(f.constant(PTR, 0))
    return f


def _shortened_function() -> FunctionBuilder:
    """Return @shortened, which makes an array of float32 from a short one of float64.

    It returns null where a number overflows, or loses digits as it is too small: NumPy
    has something to say about that.
    """
    f = FunctionBuilder("shortened", PTR, hints=["noinline"], words=PTR, thing=PTR)
    words, thing = f["words"], f["thing"]
    nothing, refused = f.label(), f.label()
    needed = COMPACT | ALIGNED
    f.guard((field(thing, FLAGS, I32) & needed).equals(needed), nothing)
    count = f.variable(I64, 1)
    ndim, dimensions = field(thing, NDIM, I32), field(thing, DIMENSIONS, PTR)
    with f.loop(ndim.to(I64, "sext")) as d:
        length = f.load(I64, dimensions, d)
        f.guard(length <= MOST_SHORTENED, nothing)
        count.set(count.get() * length)
        f.guard(count.get() <= MOST_SHORTENED, nothing)
    made = _new_array(f, words, ndim, dimensions)
    f.guard(made.differs(0), nothing)
    source, target = field(thing, DATA, PTR), field(made, DATA, PTR)
    with f.loop(count.get()) as k:
        number = f.load(F64, source, k)
        short = number.to(F32, "fptrunc")
        is_normal = (abs(short) >= LEAST_SHORT) & (abs(short) < math.inf)
        # Zeros, infinities and NaN are what they are.
        is_special = number.equals(0.0) | ~(abs(number) < math.inf)
        f.guard(is_normal | is_special, refused)
        f.store(short, target, k)
    f.ret(made)
    f.start(refused)
    f.call(GENERAL_WORDS.load(words, "decrement").text, VOID, made)
    f.jump(nothing)
    f.start(nothing)
    f.ret(f.constant(PTR, 0))
    return f


def _new_array(
    f: FunctionBuilder, words: Value, ndim: Value, dimensions: Value
) -> Value:
    """Call PyArray_New, which returns an array or null."""
    number = GENERAL_WORDS.load(words, "type_number").to(I32, "trunc")
    null, zero = f.constant(PTR, 0), f.constant(I32, 0)
    kind = GENERAL_WORDS.load(words, "array_type")
    given = kind, ndim, dimensions, number, null, null, zero, zero, null
    return f.call(GENERAL_WORDS.load(words, "new_array").text, PTR, *given)


def _number(f: FunctionBuilder, words: Value, item: Value, refused: str) -> Value:
    """Return the value of a number of Python, or a float64 of NumPy's."""
    kind = field(item, TYPE, PTR)
    is_float = kind.equals(GENERAL_WORDS.load(words, "float_type"))
    is_float |= kind.equals(GENERAL_WORDS.load(words, "number_type"))
    value: Variable = f.variable(F64, 0.0)
    with f.when(is_float):
        value.set(field(item, NUMBER, F64))
    with f.otherwise():
        f.guard(kind.equals(GENERAL_WORDS.load(words, "int_type")), refused)
        overflow = f.reserve(4, 4)
        integer = GENERAL_WORDS.load(words, "integer").text
        whole = f.call(integer, I64, item, overflow)
        f.guard(f.load(I32, overflow).equals(0), refused)
        value.set(whole.to(F64, "sitofp"))
    return value.get()
