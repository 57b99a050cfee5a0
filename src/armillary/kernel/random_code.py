"""Random numbers in machine code that depend on a seed and a number alone."""

from __future__ import annotations

from armillary.kernel.builder import Value

__all__ = ["mixed"]


def mixed(x: Value) -> Value:
    """Return a number whose 64 bits all depend on those of another: SplitMix64.

    Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
    """
    x = x + -7046029254386353131
    x = (x ^ (x >> 30)) * -4658895280553007687
    x = (x ^ (x >> 27)) * -7723592293110705685
    return x ^ (x >> 31)
