"""What stands beside compiled code: a test in C, CMake, a call from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.portable.header import Signature, numbers

__all__ = ["TEST_ROWS", "build_file", "python_example", "self_test"]

Array = npt.NDArray[Any]

TEST_ROWS: Final = 19
"""Rows of the test: more than the lanes of any target, and not a multiple of them."""

TOLERANCE: Final = {"double": 1e-11, "float": 5e-4}
"""Of results, relative to one and their size: what rounding may do to dynamics."""

SELF_TEST: Final = """\
/* Compares the functions of {name}.h with numbers that armillary computed. */
#include "{name}.h"

#include <stdio.h>

typedef {real} real;

static int failures = 0;

static void compare(const char *what, const real *found, const real *wanted,
                    size_t n) {{
  double worst = 0.0;
  int wrong = 0;
  size_t k;
  for (k = 0; k < n; k++) {{
    double size = wanted[k] < 0 ? -(double)wanted[k] : (double)wanted[k];
    double error = (double)found[k] - (double)wanted[k];
    if (wanted[k] != wanted[k]) {{ /* NaN stands for NaN */
      wrong |= found[k] == found[k];
      continue;
    }}
    if (found[k] == wanted[k]) continue;
    error = (error < 0 ? -error : error) / (1.0 + size);
    if (!(error <= {tolerance!r})) wrong = 1;
    if (error > worst) worst = error;
  }}
  printf("%-40s %s, largest error %.1e\\n", what, wrong ? "WRONG" : "right", worst);
  failures += wrong;
}}

"""


def self_test(name: str, tests: Sequence[tuple[Signature, Sequence[Array]]]) -> str:
    """Return a program in C that compares functions with known results.

    Args:
        name: Of the header.
        tests: For each function an array of rows for each of its ports.
    """
    real = tests[0][0].real
    parts = [SELF_TEST.format(name=name, real=real, tolerance=TOLERANCE[real])]
    body: list[str] = []
    for signature, arrays in tests:
        parts += _data(signature, arrays)
        body += _calls(signature, len(arrays[0]))
    main = ["int main(void) {", *body, "  return failures != 0;", "}", ""]
    return "\n".join([*parts, *main])


def _data(signature: Signature, arrays: Sequence[Array]) -> list[str]:
    """Return the rows of a function as arrays of C, and room for what it returns."""
    lines: list[str] = []
    for k, (port, rows) in enumerate(zip(signature.ports, arrays, strict=True)):
        own, size = f"{signature.name}_p{k}", len(rows) * port.size
        listed = ",\n  ".join(numbers(row, signature.real) for row in rows)
        lines.append(f"static const real {own}[{size}] = {{\n  {listed}}};")
        if k >= len(signature.inputs):
            lines.append(f"static real {own}_found[{size}];")
    return [*lines, ""]


def _calls(signature: Signature, rows: int) -> list[str]:
    name, inputs = signature.name, len(signature.inputs)
    single: list[str] = []
    many: list[str] = []
    checks: list[tuple[str, int]] = []
    for k, port in enumerate(signature.ports):
        own = f"{name}_p{k}" + ("_found" if k >= inputs else "")
        single.append(f"{own} + k * {port.size}")
        many.append(own)
        if k >= inputs:
            checks.append((f"{name}_p{k}", rows * port.size))
    lines = ["  {", "    size_t k;", f"    for (k = 0; k < {rows}; k++) {{"]
    lines += [f"      failures += {name}({', '.join(single)});", "    }", "  }"]
    for suffix, call in (("", ""), ("_rows", f"{', '.join(many)}, {rows}")):
        if call:
            lines.append(f"  failures += {name}_rows({call});")
        lines += [
            f'  compare("{name}{suffix} {port.name}", {own}_found, {own}, {size});'
            for port, (own, size) in zip(signature.outputs, checks, strict=True)
        ]
    return lines


OBJECT_BUILD: Final = """\
add_library({name} STATIC IMPORTED GLOBAL)
set_target_properties({name} PROPERTIES
  IMPORTED_LOCATION "${{CMAKE_CURRENT_SOURCE_DIR}}/{library}"
  INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_SOURCE_DIR}}")
# For languages that load libraries at run time.
add_library({name}_shared SHARED "${{CMAKE_CURRENT_SOURCE_DIR}}/{code}")
set_target_properties({name}_shared PROPERTIES
  LINKER_LANGUAGE C OUTPUT_NAME {name} WINDOWS_EXPORT_ALL_SYMBOLS ON)
"""
SOURCE_BUILD: Final = """\
# Sums of products must keep their roundings, but where the source says otherwise.
function({name}_options target)
  target_include_directories(${{target}} PUBLIC "${{CMAKE_CURRENT_SOURCE_DIR}}")
  if(NOT MSVC)
    target_compile_options(${{target}} PRIVATE -O2 -ffp-contract=off -fno-math-errno)
    target_link_libraries(${{target}} PUBLIC m)
  endif()
endfunction()
add_library({name} STATIC {name}.c)
{name}_options({name})
# For languages that load libraries at run time.
add_library({name}_shared SHARED {name}.c)
{name}_options({name}_shared)
set_target_properties({name}_shared PROPERTIES
  OUTPUT_NAME {name} WINDOWS_EXPORT_ALL_SYMBOLS ON)
"""
BUILD: Final = """\
cmake_minimum_required(VERSION 3.13)
project({name} C)

{library}
add_executable({name}_test {name}_test.c)
target_link_libraries({name}_test PRIVATE {name})
enable_testing()
add_test(NAME {name}_test COMMAND {name}_test)
"""


def build_file(name: str, *, is_source: bool, is_windows: bool = False) -> str:
    """Return the file for CMake: the library, and its test.

    Args:
        name: Of the library.
        is_source: Whether the library is source text, else an object.
        is_windows: Whether an object is one of Windows.
    """
    library, code = f"lib{name}.a", f"{name}.o"
    if is_windows:
        library, code = f"{name}.lib", f"{name}.obj"
    build = SOURCE_BUILD if is_source else OBJECT_BUILD
    made = build.format(name=name, library=library, code=code)
    return BUILD.format(name=name, library=made)


EXAMPLE: Final = '''\
"""Calls {name} through ctypes; build it first: cmake -B build && cmake --build build.

Run it as: python {name}_example.py [the shared library]
"""

import ctypes
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PATH = sys.argv[1] if len(sys.argv) > 1 else FOLDER / "build" / "lib{name}.so"
LIBRARY = ctypes.CDLL(str(PATH))


def array(*numbers):
    return (ctypes.c_{real} * len(numbers))(*numbers)


'''


def python_example(name: str, tests: Mapping[Signature, Sequence[Array]]) -> str:
    """Return a script that calls each function with one row."""
    real = next(iter(tests)).real
    parts = [EXAMPLE.format(name=name, real=real)]
    for signature, arrays in tests.items():
        names: list[str] = []
        for own, port, rows in zip(
            signature.names, signature.ports, arrays, strict=True
        ):
            names.append(own)
            is_input = len(names) <= len(signature.inputs)
            row = np.round(np.ravel(rows[0]).astype(float), 6).tolist()
            listed = ", ".join(map(repr, row)) if is_input else f"*[0.0] * {port.size}"
            parts.append(f"{own} = array({listed})\n")
        parts.append(f"status = LIBRARY.{signature.name}({', '.join(names)})\n")
        shown = names[len(signature.inputs)]
        parts.append(f'print("{signature.name}", status, list({shown})[:12])\n\n')
    return "".join(parts).rstrip("\n") + "\n"
