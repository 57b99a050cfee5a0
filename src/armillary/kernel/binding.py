"""Machine code as Python callables, through NumPy's and Python's C interfaces.

A generalised ufunc is registered for @loop; for single calls a builtin function is made
of @call. The latter reads arrays at fixed offsets, which are checked on a known array
first: where they differ only the ufunc is used.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel import object_layout as layout

_UFUNC_FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature in NumPy's ufunc table
# PyArray_GetNDArrayCVersion, PyArray_Type, PyArray_New and PyArray_FromArray in its
# array table.
_ABI_VERSION, ARRAY_TYPE, ARRAY_NEW, FROM_ARRAY = 0, 2, 93, 109
_KNOWN_ABI = 0x2000000
_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002


@lru_cache(maxsize=2)
def numpy_table(name: str) -> Any:
    """Return a table of C addresses of NumPy."""
    import numpy._core._multiarray_umath as umath

    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = read(vars(umath)[name], None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


@lru_cache(maxsize=1)
def _make_ufunc() -> Callable[..., Any]:
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *[ctypes.c_void_p] * 2,
        ctypes.c_char_p,
        *[ctypes.c_int] * 4,
        *[ctypes.c_char_p] * 2,
        ctypes.c_int,
        ctypes.c_char_p,
    )
    return prototype(numpy_table("_UFUNC_API")[_UFUNC_FROM_SIGNATURE])


def make_ufunc(
    loop: int,
    dtype: np.dtype[Any],
    counts: tuple[int, int],
    signature: str,
    name: str,
) -> tuple[Callable[..., Any], tuple[object, ...]]:
    """Return a generalised ufunc and what must live as long as it does.

    Args:
        loop: Address of a function with NumPy's inner-loop signature.
        dtype: Type of every input and output, except that the last input is of int64.
        counts: Number of inputs and of outputs.
        signature: Core dimensions, such as `(7)->(4,4)`.
        name: Its name.
    """
    # NumPy keeps the addresses of these arrays and texts, and no reference to them.
    functions = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)()
    types = (ctypes.c_char * sum(counts))(*[dtype.num] * sum(counts))
    # The state, which is the last input.
    types[counts[0] - 1] = np.dtype(np.int64).num
    texts = _c_text(name), b"", signature.encode()
    ufunc = _make_ufunc()(
        ctypes.addressof(functions),
        ctypes.addressof(data),
        ctypes.cast(types, ctypes.c_char_p),
        1,
        *counts,
        # PyUFunc_None: no identity.
        -1,
        texts[0],
        texts[1],
        0,
        texts[2],
    )
    return ufunc, (functions, data, types, *texts)


def _c_text(text: str) -> bytes:
    return text.replace("\0", "?").encode(errors="replace")


@lru_cache
def address_of_function(name: str) -> int:
    """Return where a function of Python's C interface starts."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def _make_function() -> Callable[..., Any]:
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
    )
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


class _MethodDefinition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Words(ctypes.Structure):
    """What @call finds in the array that is its `self`."""

    _fields_ = tuple((word, ctypes.c_int64) for word in layout.CALL_WORDS.offsets)
    slow: int
    tables: int
    owned: tuple[_MethodDefinition, bytes]


def make_function(
    call: int,
    dtype: np.dtype[Any],
    slow: Callable[..., Any],
    name: str,
    owned: tuple[object, ...],
    tables: int = 0,
    make_slow: Callable[[], Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return a builtin function whose body is @call.

    Args:
        call: Address of @call.
        dtype: Type of the arrays it takes as they are.
        slow: What gets every other call.
        name: Its name.
        owned: What must live as long as the function does.
        tables: Address of what @call passes to @block, if it takes tables.
        make_slow: Makes what takes the place of `slow` when it is first needed.
    """
    first = None if make_slow is None else _FirstCall(make_slow)
    if first is not None:
        slow = first
    # In the order of `CALL_WORDS`, which is that of the fields of `_Words`.
    api = numpy_table("_ARRAY_API")
    words = _Words(
        array_type=api[ARRAY_TYPE],
        dtype=id(dtype),
        new_array=api[ARRAY_NEW],
        type_number=dtype.num,
        vectorcall=address_of_function("PyObject_Vectorcall"),
        slow=id(slow),
        malloc=address_of_function("PyMem_RawMalloc"),
        free=address_of_function("PyMem_RawFree"),
        decrement=address_of_function("Py_DecRef"),
        tables=tables,
    )
    if first is not None:
        first.address = ctypes.addressof(words) + layout.CALL_WORDS.offsets["slow"]
    return builtin_function(call, words, name, (dtype, slow, *owned))


def function_for_tables(
    function: Callable[..., Any],
    tables: int,
    owned: tuple[object, ...],
    make_slow: Callable[[], Callable[..., Any]],
) -> Callable[..., Any]:
    """Return a function like one of `make_function`, for other tables.

    Args:
        function: The function, which may have none.
        tables: Address of what its @call passes to @block.
        owned: What must live as long, too.
        make_slow: Makes what gets calls that @call leaves, when it is first needed.
    """
    # The array that is its `self` has its words as base.
    of_function: _Words = function.__self__.base  # type: ignore[attr-defined]
    words, first = _Words.from_buffer_copy(of_function), _FirstCall(make_slow)
    words.slow, words.tables = id(first), tables
    first.address = ctypes.addressof(words) + layout.CALL_WORDS.offsets["slow"]
    return _function_of(words, of_function.owned, (function, first, *owned))


def nothing(*_: Any, **__: Any) -> None:
    """Return nothing, for calls that machine code leaves to others."""


class _FirstCall:
    """What stands for a function until it is called, which makes the function."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self.make = make
        self.address = 0  # of the word that says what is called
        self.made: list[Callable[..., Any]] = []  # by several threads, perhaps

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        function = self.make()
        self.made.append(function)
        ctypes.c_int64.from_address(self.address).value = id(function)
        return function(*inputs, **options)


def builtin_function(
    call: int, words: Any, name: str, owned: tuple[object, ...]
) -> Callable[..., Any]:
    """Return a builtin function.

    Args:
        call: Address of its body, Python's _PyCFunctionFastWithKeywords.
        words: A structure with what the body reads in the array that is its `self`.
        name: Its name.
        owned: What must live as long as the function does.
    """
    text = _c_text(name)
    definition = _MethodDefinition(text, call, _FASTCALL_WITH_KEYWORDS, None)
    return _function_of(words, (definition, text), owned)


def _function_of(
    words: Any, definition: tuple[_MethodDefinition, bytes], owned: tuple[object, ...]
) -> Callable[..., Any]:
    """Return the builtin function of a definition, which comes with its name."""
    # The function owns its `self`, an array, which owns `words`. The garbage collector
    # does not see what an array owns. That is right for the definition, which Python
    # reads until the function is gone, where the collector would free it before. But
    # `owned` may lead back to the function: it has to be seen, or a kernel that was
    # called once with a batch would never be freed.
    words.owned = definition
    module = _Module(__name__)
    module.owned = owned
    context: npt.NDArray[np.int64] = np.frombuffer(words, np.int64)
    return _make_function()(ctypes.addressof(definition[0]), context, module)


class _Module(str):
    """The `__module__` of a builtin function, and what must live as long as that.

    A builtin function shows two objects to the garbage collector: its `self`, and this.
    """

    __slots__ = ("owned",)
    owned: tuple[object, ...]


@lru_cache(maxsize=1)
def arrays_are_as_expected() -> bool:
    """Tell whether NumPy's arrays lie in memory as @call reads them."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    # Free-threaded Python has another header of objects, and arrays may change while
    # @call reads them.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    abi_version = ctypes.PYFUNCTYPE(ctypes.c_uint)(
        numpy_table("_ARRAY_API")[_ABI_VERSION]
    )
    return abi_version() == _KNOWN_ABI and _lies_as_expected()


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where the numbers of an array begin, sooner than NumPy tells it."""
    if arrays_are_as_expected():
        return ctypes.c_int64.from_address(id(array) + layout.DATA).value
    return array.ctypes.data


def _lies_as_expected() -> bool:
    """Tell whether the fields of a known array are where @call reads them.

    An address is followed only after the fields that are numbers were found in place.
    """
    furthest = max(
        layout.DATA,
        layout.DIMENSIONS,
        layout.STRIDES,
        layout.DESCRIPTION,
    )
    if np.ndarray.__basicsize__ < furthest + 8:
        return False
    # Neither contiguous nor starting where its memory does: shape, strides and data are
    # all different numbers.
    known = np.arange(12, dtype=np.float64).reshape(3, 4)[:, 1:]
    address = id(known)

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(address + offset).value

    def numbers(offset: int) -> tuple[int, ...]:
        return tuple((ctypes.c_int64 * known.ndim).from_address(word(offset)))

    return (
        word(8) == id(np.ndarray) == numpy_table("_ARRAY_API")[ARRAY_TYPE]
        and word(layout.DATA) == known.ctypes.data
        and ctypes.c_int32.from_address(address + layout.NDIM).value == known.ndim
        and word(layout.DESCRIPTION) == id(known.dtype)
        and numbers(layout.DIMENSIONS) == known.shape
        and numbers(layout.STRIDES) == known.strides
    )
