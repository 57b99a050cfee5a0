"""An object in place of the parts of Visual Components that do not exist here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from armillary.errors import ScriptError

__all__ = ["INERT"]


class Inert:
    """An object that does nothing: its attributes and the results of calls are itself.

    By such objects scripts show messages, switch behaviours and render; no formula
    depends on them. Arithmetic with it is refused.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Forget it."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Do nothing."""
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def _no_number(self, *others: Any) -> Any:
        raise ScriptError(
            "what getApplication and findBehaviour return does nothing here, and has "
            "no numbers: a script runs with its component and its kinematics object "
            "alone; put such a number into a property of the component"
        )

    __float__ = __int__ = __index__ = __neg__ = __abs__ = _no_number
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_number
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _no_number
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = _no_number


INERT: Final = Inert()
"""The only one."""
