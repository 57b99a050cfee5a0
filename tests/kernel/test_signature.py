"""Programs as NumPy describes them."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.kernel.signature import compact_strides, ufunc_signature
from armillary.trace import Program, trace


def test_signatures(many: Program, arm: Program):
    assert ufunc_signature(arm) == "(7)->(4,4)"
    assert ufunc_signature(many) == "(3),(),(2,3)->(2),(),(3,2,2),(3),(2)"
    assert ufunc_signature(trace(lambda: 1.0, name="one")) == "->()"


@pytest.mark.parametrize("shape", [(), (3,), (1,), (4, 4), (2, 3, 4), (1, 5, 1)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_strides_are_those_of_numpy(shape: tuple[int, ...], kind: str):
    array = np.zeros(shape, kind)
    assert tuple(compact_strides(shape, array.itemsize)) == array.strides
