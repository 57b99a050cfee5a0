"""Arrays of traced scalars: what a traced function gets for an input with a shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.trace import numpy_dispatch
from armillary.trace.numpy_dispatch import UFUNCS

Array = npt.NDArray[Any]


class TracedArray(np.ndarray):
    """An object array whose NumPy functions record, also those that compare.

    On any other object array NumPy itself compares the elements, in `maximum` or `>`:
    that branches, and takes NaN for a number.
    """

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Apply a NumPy function to every element."""
        out = cast("tuple[Any, ...]", options.get("out", ()))
        if out:
            options["out"] = tuple(map(_plain, out))
        result = _call(ufunc, method, tuple(map(_plain, inputs)), options)
        return out[0] if out else _wrapped(result)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Iterable[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call a function of NumPy that is not a ufunc, such as `where`."""
        args = tuple(args)
        if func in numpy_dispatch.FUNCTIONS or (func is np.where and len(args) == 3):
            plain = (_plain(arg) for arg in args)
            return _wrapped(numpy_dispatch.call_function(func, tuple(plain), kwargs))
        return super().__array_function__(func, types, args, kwargs)

    def clip(self, *bounds: Any, **options: Any) -> Any:
        """Return the nearest numbers within bounds."""
        return np.clip(self, *bounds, **options)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_decided(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_decided(index), value)


def _call(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    if method == "__call__" and ufunc in UFUNCS:
        return numpy_dispatch.call_ufunc(ufunc, method, inputs, options)
    # `np.maximum.reduce` and the like: our own ufunc of the recorded operation has the
    # same methods.
    if ufunc in {np.minimum, np.maximum}:  # NumPy would branch
        ufunc = np.frompyfunc(UFUNCS[ufunc], 2, 1)
    return getattr(ufunc, method)(*inputs, **options)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, TracedArray) else value


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray) and cast("Array", value).dtype == object:
        return cast("Array", value).view(TracedArray)
    return cast("Any", value)


def _decided(index: Any) -> Any:
    """Return an index with a mask of traced truths answered: each is a branch."""
    if isinstance(index, TracedArray):
        return np.asarray(index, dtype=bool)
    return index
