"""The header of compiled questions: what C must know of a cell and its functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from armillary.kernel.c_source import Prototype
from armillary.model.workcell import Workcell
from armillary.portable.asked import IDENTIFIER, KEYWORDS, Asked
from armillary.trace import Port

__all__ = ["Signature", "header", "number"]

LICENCE = "It was generated from a model of yours: it is yours, under any licence."


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Signature:
    """A function as C sees it.

    Attributes:
        name: Of the function.
        asked: What it computes.
        inputs: The inputs that callers give.
        outputs: The results.
        names: The names of the parameters, inputs first.
        real: The type of numbers in C.
        stack: About how many bytes of the stack it takes, 0 if that is not known.
    """

    name: str
    asked: Asked
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    names: tuple[str, ...]
    real: str
    stack: int = 0

    @classmethod
    def of(
        cls, name: str, asked: Asked, inputs: Sequence[Port], outputs: Sequence[Port]
    ) -> Signature:
        """Return the signature of a function with some inputs and outputs."""
        names: list[str] = []
        for port in (*inputs, *outputs):
            own = port.name
            # No keyword, and none of the names that code gives its own values.
            if not IDENTIFIER.fullmatch(own) or own in KEYWORDS or own[-1:].isdigit():
                own = f"{own}_" if IDENTIFIER.fullmatch(own) else "array"
            while own in (*names, "count"):
                own += "_"
            names.append(own)
        real = "double" if asked.kernel.dtype.itemsize == np.float64().itemsize else ""
        return cls(
            name=name,
            asked=asked,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            names=tuple(names),
            real=real or "float",
        )

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return the arrays of a call, in order."""
        return (*self.inputs, *self.outputs)

    def prototypes(self, *, rows: bool = True) -> dict[str, Prototype]:
        """Return how C declares the function, and that of rows."""
        kinds = [f"const {self.real}"] * len(self.inputs)
        kinds += [self.real] * len(self.outputs)
        given = list(zip(kinds, self.names, self.ports, strict=True))
        single = [f"{kind} {own}[{port.size}]" for kind, own, port in given]
        found = {
            self.name: Prototype(f"int {self.name}({', '.join(single)})", self.names)
        }
        if rows:
            many = [f"{kind} *{own}" for kind, own, _ in given]
            head = f"int {self.name}_rows({', '.join(many)}, size_t count)"
            found[f"{self.name}_rows"] = Prototype(head, (*self.names, "count"))
        return found

    @property
    def description(self) -> list[str]:
        """Return what the function computes, in lines."""
        lines = [f"{self.asked.title[0].upper()}{self.asked.title[1:]}."]
        for own, port in zip(self.names, self.ports, strict=True):
            shape = " x ".join(map(str, port.shape)) or "one number"
            meaning = self.asked.meaning(port)
            lines.append(f"  {own}: {shape}{f': {meaning}' if meaning else ''}")
        if self.stack:
            lines.append(f"It takes about {-(-self.stack // 1024)} KiB of the stack.")
        return lines


def header(
    name: str, cell: Workcell, signatures: Sequence[Signature], made: str, kept: str
) -> str:
    """Return the text of the header.

    Args:
        name: What names in it begin with.
        cell: The cell.
        signatures: The functions.
        made: A line about how the code was made.
        kept: What it keeps between calls.
    """
    guard = f"{name.upper()}_H"
    real = signatures[0].real
    body = [
        f"/* {_comment(cell.name or name)}, compiled by armillary: {made}",
        f"   {LICENCE}",
        "",
        "   Each function computes one row, and *_rows count rows that follow each",
        "   other in memory. Arrays must not overlap. A function returns 0, or 1 where",
        "   an angle of a row is beyond 2^30 rad (float: 2^16), where its results are",
        f"   less exact. It allocates nothing, calls nothing and keeps {kept};",
        "   threads may call it at the same time. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <math.h>",
        "#include <stddef.h>",
        "",
        *_joints(name, cell, real),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for each in signatures:
        first, *rest = each.description
        body += [f"/* {_comment(first)}", *(f"   {_comment(x)}" for x in rest)]
        body[-1] += " */"
        body += [f"{prototype.head};" for prototype in each.prototypes().values()]
        body.append("")
    body += ["#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(body)


def _joints(name: str, cell: Workcell, real: str) -> list[str]:
    """Return the joints of a cell as constants: names, units and limits."""
    joints = cell.joint_names
    if not joints:
        return []
    size = f"{name.upper()}_JOINTS"
    units = [
        cell.links[link].joint.unit.value for link in cell.joints.links[: len(joints)]
    ]
    rows = (
        ("lower", "the least positions", cell.limits[0]),
        ("upper", "the greatest", cell.limits[1]),
        ("velocity_limit", "the greatest velocities", cell.velocity_limits),
        (
            "acceleration_limit",
            "the greatest accelerations",
            cell.joints.acceleration_limits,
        ),
        ("effort_limit", "the greatest forces [N or N m]", cell.effort_limits),
        ("home", "the positions as built", np.array(cell.joints.home[: len(joints)])),
    )
    return [
        f"/* The joints of q, in order; rates are by [s]: {', '.join(units)} */",
        f"#define {size} {len(joints)}",
        _texts(f"{name}_joint_names[{size}]", joints),
        *(
            f"static const {real} {name}_{what}[{size}] = /* {meaning} */ "
            f"{{{', '.join(number(x, real) for x in values)}}};"
            for what, meaning, values in rows
        ),
        "",
    ]


def _texts(declared: str, texts: Sequence[str]) -> str:
    listed = ", ".join(f'"{_escaped(text)}"' for text in texts)
    return f"static const char *const {declared} = {{{listed}}};"


def _escaped(text: str) -> str:
    """Return a text within quotes of C; what is not ASCII as its bytes in octal."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode(errors="replace")
    )


def _comment(text: str) -> str:
    """Return a text that does not end a comment."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


def number(value: float, real: str) -> str:
    """Return a number as C writes it exactly."""
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if real == "float":
        return f"{np.float32(value)!s}f"
    return repr(value)


def numbers(values: npt.ArrayLike, real: str) -> str:
    """Return numbers as C writes them, separated by commas."""
    return ", ".join(number(x, real) for x in np.ravel(np.asarray(values)).tolist())
