"""Dataclasses whose methods are made when they are first called.

Those of the standard library are made, from text, with the class: half a millisecond
for each, which a process that imports many classes and uses few pays before its first
answer. Here `__init__`, `__eq__` and `__hash__` make themselves by their first call;
all else is as in the standard library, whose `field`, `fields` and `replace` serve.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind=None, /, **options):
        """Make a class a dataclass.

        Args:
            kind: The class.
            options: Those of `dataclasses.dataclass` that `_made` names.
        """
        if kind is None:
            return lambda kind: _made(kind, **options)
        return _made(kind, **options)


def _made(
    kind: Any,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    own: dict[str, Any] = {**vars(kind)}
    # The fields, their order and the slots are found by the standard library.
    bare = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )
    # It would write the signature there, of a method that is not made yet.
    kind.__doc__ = kind.__doc__ or kind.__name__
    made: Any = bare(kind)
    if init and "__init__" not in own:
        made.__init__ = _Late(made, "__init__", lambda: _init(made, frozen))
    if repr and "__repr__" not in own:
        made.__repr__ = recursive_repr()(_repr)
    if eq and "__eq__" not in own:
        made.__eq__ = _Late(made, "__eq__", lambda: _eq(made))
    # Python puts None there for a class with an `__eq__` of its own.
    if eq and own.get("__hash__") is None:
        hashed = _Late(made, "__hash__", lambda: _hash(made))
        made.__hash__ = hashed if frozen else None
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_set, _refuse_delete
        if slots and "__getstate__" not in own:
            made.__getstate__, made.__setstate__ = _state, _set_state
    return made


class _Late:
    """A method that is made when it is first looked up, and then stands in its place.

    Attributes:
        kind: The class.
        name: Its name there.
        make: Makes it.
    """

    __slots__ = ("kind", "make", "name")

    def __init__(self, kind: Any, name: str, make: Callable[[], Any]) -> None:
        self.kind, self.name, self.make = kind, name, make

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        method = self.make()
        # Other threads may do the same: one method is as good as the other.
        setattr(self.kind, self.name, method)
        return method.__get__(owner, kind)


def _init(kind: Any, frozen: bool) -> Any:
    fields: tuple[Field[Any], ...] = dataclasses.fields(kind)
    given = [each for each in fields if each.init]
    values: dict[str, Any] = {"_factory": MISSING, "_set": object.__setattr__}
    head, body = ["self"], list[str]()
    by_position = [each for each in given if not each.kw_only]
    by_name = [each for each in given if each.kw_only]
    for each in (*by_position, *by_name):
        if by_name and each is by_name[0]:
            head.append("*")
        default = ""
        if each.default is not MISSING:
            values[f"_default_{each.name}"] = each.default
            default = f"=_default_{each.name}"
        elif each.default_factory is not MISSING:
            default = "=_factory"
        head.append(each.name + default)
    for each in fields:
        value = each.name
        if each.default_factory is not MISSING:
            make = f"_make_{each.name}"
            values[make] = each.default_factory
            value = f"{make}() if {value} is _factory else {value}"
            if not each.init:
                value = f"{make}()"
        elif not each.init:
            # The class has the default, but where it has slots.
            if each.default is MISSING or "__slots__" not in vars(kind):
                continue
            values[f"_default_{each.name}"] = each.default
            value = f"_default_{each.name}"
        is_set = f"_set(self, {each.name!r}, {value})"
        body.append(is_set if frozen else f"self.{each.name} = {value}")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    text = f"def __init__({', '.join(head)}):\n " + "\n ".join(body or ["pass"])
    method = _method(kind, text, values)
    types: dict[str, Any] = {each.name: each.type for each in given}
    method.__annotations__ = {**types, "return": None}
    return method


def _eq(kind: Any) -> Any:
    mine, theirs = (_compared(kind, who) for who in ("self", "other"))
    return _method(
        kind,
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {mine} == {theirs}\n"
        " return NotImplemented",
        {},
    )


def _hash(kind: Any) -> Any:
    text = f"def __hash__(self):\n return hash({_compared(kind, 'self')})"
    return _method(kind, text, {})


def _compared(kind: Any, who: str) -> str:
    """Return the text of a tuple of the fields that are compared."""
    names = [each.name for each in dataclasses.fields(kind) if each.compare]
    return "(" + "".join(f"{who}.{name}," for name in names) + ")"


def _method(kind: Any, text: str, values: dict[str, Any]) -> Any:
    made: dict[str, Any] = {}
    # Names of fields are all that enters the text, and Python has read them as names.
    exec(text, values, made)
    ((name, method),) = made.items()
    method.__qualname__ = f"{kind.__qualname__}.{name}"
    method.__module__ = kind.__module__
    return method


def _repr(self: Any) -> str:
    shown = [each.name for each in dataclasses.fields(self) if each.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
