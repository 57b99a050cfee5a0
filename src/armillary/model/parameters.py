"""The parameters of values: their stored form, and when two are nearly equal."""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import (
    Any,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np

from armillary.errors import ArmillaryError, JointError, ModelError
from armillary.model.check_pose import rigid
from armillary.spatial.pose import IDENTITY, Pose

DEEPEST = 8


class Parameterised(msgspec.Struct, frozen=True):
    """A value made of parameters, which may itself be a parameter of another."""


@lru_cache(maxsize=1024)
def parameter_types(kind: type) -> dict[str, Any]:
    """Return the annotation of each parameter of a class, none where unresolvable."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError, AttributeError, SyntaxError):  # of the user's
        return {}


class Parameter(NamedTuple):
    """A parameter of a class.

    Attributes:
        name: Of the field.
        annotation: Its type, None where that cannot be resolved.
        floats: How many numbers it is a tuple of, -1 where it is something else.
        label: What messages call it.
    """

    name: str
    annotation: Any
    floats: int
    label: str


@lru_cache(maxsize=1024)
def parameters_of(kind: Any) -> tuple[Parameter, ...]:
    """Return the parameters of a class of structs."""
    types = parameter_types(kind)
    names: tuple[str, ...] = kind.__struct_fields__
    return tuple(
        Parameter(
            name,
            types.get(name),
            _count_of_floats(types.get(name)),
            f"{kind.__name__}.{name}",
        )
        for name in names
    )


def store(struct: msgspec.Struct) -> None:
    """Bring the parameters of a struct that is being made into their stored form.

    Raises:
        JointError: One is not finite, not what is annotated, or cannot be stored.
    """
    for name, annotation, floats, label in parameters_of(type(struct)):
        given = getattr(struct, name)
        if floats >= 0 and _is_floats(given, floats):  # the most frequent ones
            continue
        kept = stored(given, annotation, label)
        if kept is not given:
            msgspec.structs.force_setattr(struct, name, kept)


def stored(value: Any, annotation: Any, name: str) -> Any:
    """Return a parameter in its stored form: numbers, texts, poses, joints, tuples.

    Args:
        value: What was given: NumPy numbers, arrays and lists become plain ones, whole
            numbers become floats and arrays poses where `annotation` says so.
        annotation: Of the parameter; kinds other than those above are not checked.
        name: What messages call it.

    Raises:
        JointError: It is not finite, not what is annotated, or cannot be stored.
    """
    if annotation is float and _is_plain(value):
        return value
    if annotation is Pose and type(value) is Pose:
        return _pose(value, name)
    return _typed(_plain(value, name), annotation, name)


def approx_equal(a: Any, b: Any, tolerance: float) -> bool:
    """Return whether two values of the model differ by no more than `tolerance`.

    Numbers and the entries of poses are compared one by one; all else must be equal.
    """
    if isinstance(a, Pose) and isinstance(b, Pose):
        return a.approx_equal(b, tolerance)
    if _is_number(a) and _is_number(b):
        return a == b or abs(a - b) <= tolerance
    if type(a) is tuple and type(b) is tuple:
        left, right = cast(Sequence[Any], a), cast(Sequence[Any], b)
        return len(left) == len(right) and all(
            approx_equal(x, y, tolerance) for x, y in zip(left, right, strict=True)
        )
    if isinstance(a, msgspec.Struct) and type(b) is type(a):
        return all(
            approx_equal(getattr(a, name), getattr(b, name), tolerance)
            for name in a.__struct_fields__
        )
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def is_numeric(value: object) -> bool:
    """Return whether a stored parameter is numbers, poses or joints throughout."""
    if isinstance(value, tuple):
        return all(map(is_numeric, cast(Sequence[Any], value)))
    if isinstance(value, bool):
        return False
    return isinstance(value, (Pose, Parameterised, int, float))


def numbers_of(value: Any) -> Iterator[float]:
    """Yield the numbers in a numeric parameter; of a pose those of its position."""
    if isinstance(value, Pose):
        yield from value.position
    elif isinstance(value, tuple):
        for item in cast(Sequence[Any], value):
            yield from numbers_of(item)
    elif isinstance(value, Parameterised):
        for part in _parts(value):
            if is_numeric(part):
                yield from numbers_of(part)
    else:
        yield float(value)


def nested_in(value: Any) -> Iterator[Any]:
    """Yield the joints among the parameters of a joint, and those among theirs."""
    items: Iterable[Any] = ()
    if isinstance(value, Parameterised):
        items = _parts(value)
    elif isinstance(value, tuple):
        items = cast(Sequence[Any], value)
    for item in items:
        if isinstance(item, Parameterised):
            yield item
        if isinstance(item, tuple | Parameterised):
            yield from nested_in(item)


def _parts(value: Parameterised) -> Iterator[Any]:
    return (getattr(value, name) for name in value.__struct_fields__)


def _depth(value: Any) -> int:
    """Return how many joints are inside each other."""
    if isinstance(value, tuple):
        return max(map(_depth, cast(Sequence[Any], value)), default=0)
    if isinstance(value, Parameterised):
        return 1 + _depth(tuple(_parts(value)))
    return 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain(value: Any, name: str, depth: int = 0) -> Any:
    """Return a value as finite numbers, texts, poses and tuples."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(cast(Any, value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        return _number(value, name)
    if isinstance(value, Pose):
        return _pose(value, name)
    if isinstance(value, Parameterised):
        if _depth(value) >= DEEPEST:
            raise JointError(f"{name} makes more than {DEEPEST} joints in each other.")
        return value
    if isinstance(value, np.ndarray):
        return _plain(cast(Any, value).tolist(), name, depth)
    if isinstance(value, (list, tuple)):
        if depth > DEEPEST:
            raise JointError(f"{name} is nested more than {DEEPEST} deep.")
        items = cast(Sequence[Any], value)
        plain = [
            _plain(item, f"{name}[{k}]", depth + 1) for k, item in enumerate(items)
        ]
        return _tuple_of(plain, items)
    raise JointError(
        f"{name} is {_described(value)}. The parameters of a joint are numbers, texts, "
        "poses, joints, and sequences of them, so that joints can be compared and "
        "saved."
    )


def _tuple_of(items: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
    """Return items as a tuple, the given one where they are its own."""
    kind: Any = type(given)
    is_kept = kind is tuple and all(map(operator.is_, items, given))
    return cast(tuple[Any, ...], given) if is_kept else tuple(items)


def _number(value: Any, name: str) -> int | float:
    """Return a finite number as int or float, itself where it is, -0.0 as 0.0."""
    if _is_plain(value):
        return value
    try:
        number = float(value) if value else 0.0
    except OverflowError:  # of a huge int
        number = math.inf
    if not math.isfinite(number):
        raise JointError(f"{name} is {number}; it must be finite.")
    return int(cast(Any, value)) if isinstance(value, (int, np.integer)) else number


def _is_plain(value: Any) -> bool:
    """Return whether a value is a finite float, not -0.0."""
    return (
        type(value) is float
        and math.isfinite(value)
        and (value != 0.0 or math.copysign(1.0, value) > 0.0)
    )


def _pose(pose: Pose, name: str) -> Pose:
    """Return a pose of plain finite floats, checked."""
    if pose is IDENTITY:
        return pose
    try:
        stored = rigid(pose, name)
    except ModelError as error:
        raise JointError(str(error)) from error
    return IDENTITY if stored == IDENTITY else stored


# What annotations ask for.


def _is_floats(value: Any, count: int) -> bool:
    return type(value) is tuple and _has(cast(tuple[Any, ...], value), count)


def _has(values: tuple[Any, ...], count: int) -> bool:
    return len(values) == count and all(map(_is_plain, values))


@lru_cache(maxsize=1024)
def _count_of_floats(annotation: Any) -> int:
    """Return how many numbers a tuple of floats has, -1 for anything else."""
    arguments = get_args(annotation)
    is_floats = get_origin(annotation) is tuple and set(arguments) == {float}
    return len(arguments) if is_floats else -1


def _typed(value: Any, annotation: Any, name: str) -> Any:
    """Return a plain value as what `annotation` says, where that is understood."""
    if annotation is Pose and isinstance(value, tuple):
        return _pose_of_array(cast(Sequence[Any], value), name)
    if isinstance(annotation, type) and issubclass(annotation, Parameterised):
        if not isinstance(value, annotation):
            wanted = annotation.__name__
            raise JointError(f"{name} must be a {wanted}, not {_described(value)}.")
        return value
    rule = _RULES.get(annotation) if isinstance(annotation, type) else None
    if rule is not None:
        fits, wanted, convert = rule
        if not fits(value):
            raise JointError(f"{name} must be {wanted}, not {_described(value)}.")
        return convert(value)
    origin: Any = get_origin(annotation)
    arguments = get_args(annotation)
    if origin in {Union, types.UnionType}:
        return _one_of(value, arguments, name)
    if origin is tuple:
        return _tuple(value, arguments, name)
    if origin in {list, Sequence} and isinstance(value, tuple):
        return _tuple(value, (*arguments, ...), name)
    return value


def _itself(value: Any) -> Any:
    return value


_RULES: dict[type, tuple[Callable[[Any], bool], str, Callable[[Any], Any]]] = {
    float: (_is_number, "a number", float),
    int: (lambda v: _is_number(v) and v == int(v), "a whole number", int),
    bool: (lambda v: isinstance(v, bool), "True or False", _itself),
    str: (lambda v: isinstance(v, str), "a text", _itself),
    Pose: (lambda v: isinstance(v, Pose), "a Pose or a 4x4 array", _itself),
    type(None): (lambda v: v is None, "None", _itself),
}


def _one_of(value: Any, annotations: tuple[Any, ...], name: str) -> Any:
    fault: JointError | None = None
    for annotation in annotations:
        try:
            return _typed(value, annotation, name)
        except JointError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _tuple(value: Any, annotations: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    is_open = len(annotations) == 2 and annotations[1] is ...
    wanted = "several values" if is_open else f"{len(annotations)} values"
    if not isinstance(value, tuple):
        raise JointError(f"{name} must be {wanted}, not {_described(value)}.")
    items = cast(Sequence[Any], value)
    if is_open:
        annotations = annotations[:1] * len(items)
    elif len(items) != len(annotations):
        raise JointError(f"{name} must be {wanted}, not {len(items)}: {value!r}.")
    typed = [
        _typed(item, annotation, f"{name}[{k}]")
        for k, (item, annotation) in enumerate(zip(items, annotations, strict=True))
    ]
    return _tuple_of(typed, items)


def _pose_of_array(value: Sequence[Any], name: str) -> Pose:
    try:
        return _pose(Pose.from_matrix(value), name)
    except ArmillaryError as error:
        raise JointError(f"{name} is not a pose. {error}") from error


def _described(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return (
            repr(value) if len(repr(value)) < 60 else f"a long {type(value).__name__}"
        )
    if callable(value):
        return "a function" if not isinstance(value, type) else "a class"
    return f"a {type(value).__name__}"
