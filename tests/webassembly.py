"""Functions of a WebAssembly module in one process of node, with rows of arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from javascript import run_javascript

Array = npt.NDArray[Any]

SCRIPT = """
const { bytes, name, inputs, sizes, count, is_wide } = GIVEN;
const module = new WebAssembly.Module(new Uint8Array(bytes));
const e = new WebAssembly.Instance(module).exports;
const Reals = is_wide ? Float64Array : Float32Array, size = Reals.BYTES_PER_ELEMENT;
let end = e.heap_base.value;
const room = (length) => (end += size * length) - size * length;
const given = inputs.map((each) => room(each.length)), steps = inputs.map(
  (each) => size * each.length / count);
const made = sizes.map((each) => room(each * count));
e.memory.grow(1 + Math.ceil(end / 65536));
inputs.forEach((each, k) => new Reals(e.memory.buffer, given[k], each.length).set(
  each.map(Number)));
const found = () => made.map((at, k) => new Reals(e.memory.buffer, at, sizes[k] * count)
  .slice());
const status = e[name + "_rows"](...given, ...made, count);
const many = found();
for (let k = 0; k < count; k++) {
  e[name](...given.map((at, i) => at + steps[i] * k),
    ...made.map((at, i) => at + size * sizes[i] * k));
}
finish([[[status]], many, found()]);
"""


def run_webassembly(
    module: bytes,
    name: str,
    inputs: Sequence[Array],
    sizes: Sequence[int],
    folder: Path,
) -> tuple[int, list[Array], list[Array]]:
    """Return the status of a function, what it gives for all rows, and for each alone.

    Args:
        module: The module.
        name: Of the function of one row.
        inputs: Rows of each input, of one type.
        sizes: How many numbers a row of each result has.
        folder: Where the script is written.
    """
    count, kind = len(inputs[0]), inputs[0].dtype
    given = {
        "bytes": list(module),
        "name": name,
        # As texts, since JSON has neither NaN nor infinities.
        "inputs": [[_text(x) for x in np.ravel(each).tolist()] for each in inputs],
        "sizes": list(sizes),
        "count": count,
        "is_wide": kind == np.float64,
    }
    script = f"const GIVEN = {json.dumps(given)};{SCRIPT}"
    ((status,),), *both = run_javascript(script, folder)
    many, single = (
        [np.reshape(each, (count, -1)).astype(kind) for each in part] for part in both
    )
    return int(status), many, single


def _text(number: float) -> str:
    return repr(number).replace("inf", "Infinity").replace("nan", "NaN")
