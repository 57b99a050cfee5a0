"""Inertias in files, possible ones or not: energies of what is read are not negative.

The judge is exact: kinetic energies in fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.actin import FORMAT as ACTIN
from armillary.formats.diagnostic import Report
from armillary.formats.format import Format, ReadOptions
from armillary.formats.native import FORMAT as NATIVE
from armillary.formats.urdf import FORMAT as URDF
from armillary.spatial.inertia import SpatialInertia

Numbers = list[str]


def urdf(numbers: Numbers) -> str:
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers
    return (
        '<robot name="r"><link name="a"><inertial>'
        f'<origin xyz="{x} {y} {z}" rpy="0.3 -0.4 0.5"/><mass value="{m}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/>'
        "</inertial></link></robot>"
    )


def native(numbers: Numbers) -> str:
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers
    return (
        '{"format": "armillary cell", "version": 1, "manipulators": [{"name": "r", '
        '"links": [{"name": "a", "inertia": {'
        f'"mass": {m}, "first_moment": [{x}, {y}, {z}], '
        f'"rotational": [[{xx}, {xy}, {xz}], [{xy}, {yy}, {yz}], [{xz}, {yz}, {zz}]]'
        "}}]}]}"
    )


FIRST = ("momentX", "momentY", "momentZ")
SECOND = ("jXX", "jYY", "jZZ", "jXY", "jXZ", "jYZ")


def actin(numbers: Numbers) -> str:
    def elements(names: tuple[str, ...], values: Numbers) -> str:
        pairs = zip(names, values, strict=True)
        return "".join(f"<mn:{name}>{value}</mn:{name}>" for name, value in pairs)

    return (
        "<mn:individualManipulator"
        ' xmlns:mn="http://www.energid.com/namespace/mn"><mn:identifier>r'
        "</mn:identifier><mn:manipulatorLink><mn:identifier>a</mn:identifier>"
        f"<mn:massProperties><mn:mass>{numbers[0]}</mn:mass>"
        f"<mn:firstMoment>{elements(FIRST, numbers[1:4])}</mn:firstMoment>"
        f"<mn:secondMoment>{elements(SECOND, numbers[4:])}</mn:secondMoment>"
        "</mn:massProperties></mn:manipulatorLink></mn:individualManipulator>"
    )


FILES: dict[str, tuple[Format, Callable[[Numbers], str]]] = {
    "urdf": (URDF, urdf),
    "native": (NATIVE, native),
    "actin": (ACTIN, actin),
}
formats = pytest.mark.parametrize("format", FILES)


def read(format: str, numbers: Numbers) -> tuple[SpatialInertia | None, Report]:
    reader, text = FILES[format]
    report = Report()
    cell = reader.read(text(numbers).encode(), "r", ReadOptions(), report)
    return cell.links[0].inertia, report


def exact(values: Any) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def has_energy(body: SpatialInertia) -> bool:
    """Whether no twist has a negative kinetic energy, as far as rounding allows.

    Tried are turns about some axes, each with the velocity of least energy, -w x c.
    """
    (m,), h = exact([body.mass]), exact(body.first_moment)
    rows = [exact(row) for row in body.rotational]
    if not m and any(h):
        return False
    rounding = Fraction(2e-6) * max(abs(x) for row in rows for x in row)
    rounding += Fraction(2e-20) * m
    x, y, z = h
    for w in [exact(w) for w in product((-1.0, 0.0, 0.5, 1.0), repeat=3)]:
        turned = sum(w[i] * rows[i][k] * w[k] for i in range(3) for k in range(3))
        across = [w[1] * z - w[2] * y, w[2] * x - w[0] * z, w[0] * y - w[1] * x]
        moved = sum(each * each for each in across) / (m or 1)
        if m < 0 or turned - moved < -rounding * sum(each * each for each in w):
            return False
    return True


PLAIN = ["2", "0.1", "0", "-0.2", "1", "1.5", "2", "0.1", "0", "0.2"]
EXTREMES = [
    *("0", "-0.0", "5e-324", "2.7e-323", "1e-320", "1e-300", "1e-160", "1.5", "3"),
    *("1e154", "1e200", "1.7e308", "-5", "-5e-324", "-1e200", "nan", "inf", "1e999"),
]


@formats
def test_an_inertia_that_is_possible_is_kept(format: str):
    body, report = read(format, PLAIN)
    assert body is not None
    assert body.mass == 2.0
    assert report.diagnostics == ()
    assert has_energy(body)


@formats
@pytest.mark.parametrize("number", ["-5", "nan", "inf", "1e200", "-1e200", "1e999"])
def test_each_impossible_number_is_reported(format: str, number: str):
    for place in range(10):
        numbers = [*PLAIN[:place], number, *PLAIN[place + 1 :]]
        try:
            body, report = read(format, numbers)
        except FormatError:
            continue
        is_possible = body is not None and has_energy(body)
        assert report.diagnostics or is_possible, place


@pytest.mark.sampled(1)
@formats
def test_energies_of_what_is_read_are_not_negative(format: str):
    random = np.random.default_rng(3)
    kept = 0
    for _ in range(800):
        chance = random.random()
        numbers = [
            str(random.choice(EXTREMES if random.random() < chance else ["0", "1"]))
            for _ in range(10)
        ]
        try:
            body, _ = read(format, numbers)
        except FormatError:
            continue
        if body is not None:
            kept += 1
            assert has_energy(body), numbers
    assert kept > 20


def test_moments_without_mass_that_underflow_are_compared():
    moments = ["0", "2", "2", "1", "0", "0", "0", "0", "1e-300", "0"]
    body, report = read("urdf", moments)
    assert [found.code for found in report.diagnostics] == ["bad-inertia"]
    assert body is None or has_energy(body)
