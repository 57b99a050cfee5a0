"""The general entry of a kernel as a Python callable; see `general_entry`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel import object_layout as layout
from armillary.kernel.arguments import FLOAT64, Computation, compact_strides
from armillary.kernel.binding import (
    ARRAY_NEW,
    ARRAY_TYPE,
    FROM_ARRAY,
    address_of_function,
    arrays_are_as_expected,
    builtin_function,
    numpy_table,
)

__all__ = ["make_general_function", "objects_are_as_expected"]


@lru_cache(maxsize=1)
def objects_are_as_expected() -> bool:
    """Tell whether objects of Python and NumPy lie in memory as @general reads them."""
    return arrays_are_as_expected() and _lie_as_expected()


def _lie_as_expected() -> bool:
    """Tell whether the fields of known objects are where @general reads them.

    An address is followed only after the fields that are numbers were found in place.
    """

    def word(thing: object, offset: int) -> int:
        return ctypes.c_int64.from_address(id(thing) + offset).value

    def number(thing: object, offset: int) -> int:
        return ctypes.c_int32.from_address(id(thing) + offset).value

    def real(thing: object) -> float:
        return ctypes.c_double.from_address(id(thing) + layout.NUMBER).value

    listed, several = [1.5, 2.5, 3.5], (1.5, 2.5, 3.5)
    items = list(map(id, listed))
    sizes = word(listed, layout.COUNT), word(several, layout.COUNT)
    if sizes != (3, 3) or list.__basicsize__ < layout.LIST_ITEMS + 8:
        return False
    in_list = (ctypes.c_int64 * 3).from_address(word(listed, layout.LIST_ITEMS))
    in_tuple = (ctypes.c_int64 * 3).from_address(id(several) + tuple.__basicsize__)
    array = np.zeros((2, 3))
    read_only, turned = np.frombuffer(b"12345678", np.float64), array.T
    shifted = np.frombuffer(b"." + bytes(16), np.uint8)[1:].view(np.float64)
    known = layout.COMPACT | layout.ALIGNED | layout.WRITEABLE
    flags = [
        number(a, layout.FLAGS) & known for a in (array, read_only, turned, shifted)
    ]
    kinds = [np.dtype(kind) for kind in (np.bool_, np.int64, np.float16, np.float64)]
    return (
        list(in_list) == items
        and list(in_tuple) == list(map(id, several))
        and (real(1.5), real(np.float64(2.5))) == (1.5, 2.5)
        and flags[:3]
        == [known, layout.COMPACT | layout.ALIGNED, layout.ALIGNED | layout.WRITEABLE]
        and not flags[3] & layout.ALIGNED
        and all(number(kind, layout.TYPE_NUMBER) == kind.num for kind in kinds)
        and kinds[2].num == layout.HALF
    )


class _GeneralWords(ctypes.Structure):
    """What @general finds in the array that is its `self`."""

    _fields_ = tuple((word, ctypes.c_int64) for word in layout.GENERAL_WORDS.offsets)


def make_general_function(  # noqa: PLR0913
    call: int,
    loop: int,
    program: Computation,
    dtype: np.dtype[Any],
    state: npt.NDArray[np.int64],
    slow: Callable[..., Any],
    owned: tuple[object, ...],
    *,
    most_rows: int,
    release_from: int,
    most_batch: int = layout.MOST_BATCH,
) -> Callable[..., Any]:
    """Return a builtin function whose body is @general, for a kernel.

    Args:
        call: Address of @general.
        loop: Address of the kernel's @loop.
        program: What it computes.
        dtype: Its type.
        state: What it copies for each call, see `fallback`.
        slow: What gets calls that are not for @general.
        owned: What must live as long as the function does.
        most_rows: The largest batch that it takes.
        release_from: Rows from which on it releases the global lock.
        most_batch: Dimensions of a batch that it takes, 0 for single rows.
    """
    ports = [*program.inputs, *program.outputs]
    item = dtype.itemsize
    table = np.zeros((len(ports), layout.PORT.bytes // 8), np.int64)
    for row, port in zip(table, ports, strict=True):
        rank = len(port.shape)
        row[:3] = rank, port.size, port.size * item
        row[3 : 3 + rank] = port.shape
        row[6 : 6 + rank] = compact_strides(port.shape, item)
    api = numpy_table("_ARRAY_API")
    names = sys.intern("out"), sys.intern("threads")
    words = _GeneralWords(
        array_type=api[ARRAY_TYPE],
        dtype=id(dtype),
        double_dtype=id(FLOAT64),
        new_array=api[ARRAY_NEW],
        type_number=dtype.num,
        vectorcall=address_of_function("PyObject_Vectorcall"),
        slow=id(slow),
        increment=address_of_function("Py_IncRef"),
        decrement=address_of_function("Py_DecRef"),
        free=address_of_function("PyMem_RawFree"),
        none=id(None),
        list_type=id(list),
        tuple_type=id(tuple),
        int_type=id(int),
        float_type=id(float),
        number_type=id(np.float64),
        tuple_items=tuple.__basicsize__,
        out_name=id(names[0]),
        threads_name=id(names[1]),
        integer=address_of_function("PyLong_AsLongLongAndOverflow"),
        from_array=api[FROM_ARRAY],
        new_tuple=address_of_function("PyTuple_New"),
        save_thread=address_of_function("PyEval_SaveThread"),
        restore_thread=address_of_function("PyEval_RestoreThread"),
        occurred=address_of_function("PyErr_Occurred"),
        loop=loop,
        inputs=len(program.inputs),
        outputs=len(program.outputs),
        ports=table.ctypes.data,
        state=state.ctypes.data,
        item=item,
        most_rows=most_rows,
        release_from=release_from,
        most_batch=most_batch,
    )
    return builtin_function(
        call, words, program.name, (dtype, slow, table, state, names, *owned)
    )
