"""Late dataclasses are those of the standard library, of the same source."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from armillary.late_dataclass import dataclass

OPTIONS = [
    {},
    {"frozen": True},
    {"eq": False},
    {"frozen": True, "eq": False, "kw_only": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"init": False, "repr": False},
]


def classes(make: Any, **options: Any) -> tuple[type, type, type]:
    """A class, one that inherits it, and one with methods of its own."""

    @make(**options)
    class Base:
        a: int
        b: list[int] = field(default_factory=list[int])
        c: str = field(default="c", repr=False, compare=False)
        kind: ClassVar[int] = 4

    @make(**options)
    class Derived(Base):
        d: float = 0.5
        e: int = field(init=False, default=7)
        f: tuple[int, ...] = field(init=False, default_factory=tuple)

    @make(**options)
    class Own:  # noqa: PLW1641
        a: int = 1

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + 1)

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    return Base, Derived, Own


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, [2]), {}),
    ((1, [2], "x"), {}),
    ((), {"a": 1, "c": "x"}),
    ((), {"a": 1, "d": 2.0}),
    ((), {"a": 1, "e": 2}),
    ((1, [2], "x", 0.25), {}),
    ((1, [2], "x", 0.25, 5), {}),
    ((), {"b": [3]}),
]


def outcome(call: Any) -> Any:
    """What a call returns, or the class of what it raises."""
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_values_are_those_of_the_standard_library(options: dict[str, Any]):
    pairs = zip(
        classes(dataclass, **options),
        classes(dataclasses.dataclass, **options),
        strict=True,
    )
    for ours, theirs in pairs:
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs)).replace(
            "<factory>", repr(dataclasses.MISSING)
        )
        assert [f.name for f in dataclasses.fields(ours)] == [
            f.name for f in dataclasses.fields(theirs)
        ]
        assert (ours.__hash__ is None) == (theirs.__hash__ is None)
        for args, named in CALLS:
            a = outcome(lambda: ours(*args, **named))  # noqa: B023
            b = outcome(lambda: theirs(*args, **named))  # noqa: B023
            assert isinstance(a, type) == isinstance(b, type)
            if isinstance(a, type):
                assert a is b
                continue
            assert same(a, b, options)


def same(a: Any, b: Any, options: dict[str, Any]) -> bool:
    """Whether two values behave alike."""
    names = [each.name for each in dataclasses.fields(a)]
    read = [[outcome(lambda: getattr(x, n)) for n in names] for x in (a, b)]  # noqa: B023
    assert read[0] == read[1]
    if options.get("repr", True):
        assert repr(a) == repr(b)
    copied = [outcome(lambda: copy.copy(x) == x) for x in (a, b)]  # noqa: B023
    assert copied[0] == copied[1]
    assert (a == 3, a != 3) == (b == 3, b != 3)
    hashes = [outcome(lambda: hash(x)) for x in (a, b)]  # noqa: B023
    if options.get("eq", True):
        assert hashes[0] == hashes[1]  # list fields raise TypeError in both
    for x in (a, b):
        if options.get("frozen"):
            with pytest.raises(FrozenInstanceError):
                x.a = 3
            with pytest.raises(FrozenInstanceError):
                del x.a
        else:
            x.a = 9
    changed = [outcome(lambda: dataclasses.replace(x, a=5)) for x in (a, b)]  # noqa: B023
    if isinstance(changed[0], type):
        assert changed[0] is changed[1]
    else:
        assert changed[0].a == changed[1].a
    return True


@dataclass(frozen=True, slots=True)
class Sent:
    a: int
    b: tuple[float, ...] = ()


def test_frozen_values_with_slots_are_pickled():
    value = Sent(1, (0.5,))
    back = pickle.loads(pickle.dumps(value))
    assert (back, hash(back)) == (value, hash(value))
    assert not hasattr(back, "__dict__")


def test_methods_are_made_once_and_shared_with_subclasses():
    @dataclass(frozen=True)
    class Base:
        a: int

    class Plain(Base):
        pass

    assert Plain(3).a == 3
    made = Base.__init__
    assert inspect.isfunction(made)
    assert vars(Base)["__init__"] is made
    assert "__init__" not in vars(Plain)
    assert Base(3) != Plain(3)
    assert Base(3) == Base(3)
