"""Where machine code finds what it is given: words of its own, fields of objects.

The ways into a kernel are functions of Python. Their `self` is an array of words, and
they read arrays, lists and numbers where Python and NumPy keep their fields, which
`binding` and `general_binding` check on known objects first. Code that was compiled
earlier is bound by this alone, without what makes code.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.arguments import MAX_DIMENSIONS
from armillary.kernel.machine_type import I64, PTR
from armillary.kernel.memory import Struct

CALL_WORDS: Final = Struct.of(
    array_type=(PTR, 1),
    dtype=(PTR, 1),
    new_array=(PTR, 1),
    type_number=(I64, 1),
    vectorcall=(PTR, 1),
    slow=(PTR, 1),
    malloc=(PTR, 1),
    free=(PTR, 1),
    decrement=(PTR, 1),
    tables=(PTR, 1),
)
"""Where @call finds its addresses: the numbers of an array that is its `self`."""

# Where the fields of a NumPy array lie; checked on a known array before use.
DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTION, FLAGS = 16, 24, 32, 40, 56, 64
TYPE = 8

GENERAL_WORDS: Final = Struct.of(
    array_type=(PTR, 1),
    dtype=(PTR, 1),
    double_dtype=(PTR, 1),  # float64
    new_array=(PTR, 1),
    type_number=(I64, 1),
    vectorcall=(PTR, 1),
    slow=(PTR, 1),
    increment=(PTR, 1),
    decrement=(PTR, 1),
    free=(PTR, 1),
    # What Python's own types and values are, and where a tuple has its items.
    none=(PTR, 1),
    list_type=(PTR, 1),
    tuple_type=(PTR, 1),
    int_type=(PTR, 1),
    float_type=(PTR, 1),
    number_type=(PTR, 1),  # NumPy's float64, which is a float
    tuple_items=(I64, 1),
    out_name=(PTR, 1),
    threads_name=(PTR, 1),
    # Python's and NumPy's functions.
    integer=(PTR, 1),  # PyLong_AsLongLongAndOverflow
    from_array=(PTR, 1),
    new_tuple=(PTR, 1),
    save_thread=(PTR, 1),
    restore_thread=(PTR, 1),
    occurred=(PTR, 1),  # PyErr_Occurred
    # The kernel.
    loop=(PTR, 1),
    inputs=(I64, 1),
    outputs=(I64, 1),
    ports=(PTR, 1),
    state=(PTR, 1),
    item=(I64, 1),  # bytes of a real
    most_rows=(I64, 1),  # more are for several threads, or need much memory
    release_from=(I64, 1),  # so many rows release the global lock
    most_batch=(I64, 1),  # dimensions
)
"""Where @general finds its addresses and numbers: an array that is its `self`."""

PORT: Final = Struct.of(
    rank=(I64, 1),
    size=(I64, 1),
    bytes=(I64, 1),
    shape=(I64, MAX_DIMENSIONS),
    strides=(I64, MAX_DIMENSIONS),
)
"""What it reads of an input or output: strides are those of compact rows [bytes]."""

# Flags of arrays: row-major and compact; at addresses for numbers; to be written. Of
# conversions, that digits may be lost.
COMPACT, ALIGNED, WRITEABLE, ANY_CAST = 0x1, 0x100, 0x400, 0x10

# Offsets in Python's objects: the size of a list or tuple, a list's items, a float.
COUNT, LIST_ITEMS, NUMBER = 16, 24, 16

# Of NumPy's description of a type.
TYPE_NUMBER = 28
HALF = 23

MOST_BATCH: Final = 8
"""Dimensions of a batch."""
