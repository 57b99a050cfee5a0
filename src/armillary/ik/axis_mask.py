"""Which directions and rotations of a task count."""

from __future__ import annotations

from armillary.errors import ModelError


def chosen_axes(text: str, what: str) -> tuple[bool, bool, bool]:
    """Return which of x, y and z a text such as `xy` names.

    Raises:
        ModelError: It holds other letters, or one twice.
    """
    if not set(text) <= set("xyz") or len(set(text)) < len(text):
        raise ModelError(f"{what}= takes letters of 'xyz', each once; not '{text}'.")
    return "x" in text, "y" in text, "z" in text
