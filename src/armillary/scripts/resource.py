r"""Components of Visual Components, `component.rsc`: properties, joints, the script.

A resource is text: statements of words, each of which may have a block in braces.

    Node "rSimResource"
    {
      Name "SCARA"
      Functionality "rPythonKinematics"
      {
        Script "from vcPythonKinematics import *\n..."
      }
      VariableSpace
      {
        Variable "rTVariable<rDouble>"
        {
          Name "Kinematics::L1"
          Value 325
        }
      }
      Node "rSimLink"
      {
        Dof "Rotational"
        {
          Name "J1"
          MinLimit
          {
            Expression "-Stroke/2"
          }
        }
      }
    }

Lengths are in millimetres, angles in degrees. Geometry and behaviours are left out.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from armillary.errors import ScriptError, quote
from armillary.limits import EXPRESSION_LENGTH, RESOURCE_DEPTH
from armillary.model.user_warning import warn_user
from armillary.scripts.component import ComponentData, JointData, PropertyData, Value

__all__ = ["RESOURCE", "Resource", "read_resource"]

RESOURCE: Final = ".rsc"
HEAD: Final = b"VCMD"
HOME: Final = "HOME"
KINDS: Final = {"Rotational": "rotational", "Translational": "translational"}
SKIPPED: Final = ("Feature", "Settings", "Quantity")
"""Statements whose blocks are not kept: geometry is most of a file."""

_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|(\n)|([^\s"{}]+)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")


class Resource(NamedTuple):
    """What a component is.

    Attributes:
        data: Its properties and joints.
        script: Of its kinematics; empty where it has none.
    """

    data: ComponentData
    script: str


@dataclass(slots=True)
class _Statement:
    """A statement with its block."""

    words: list[str]
    block: list[_Statement] = field(default_factory=list["_Statement"])

    def named(self, word: str, kind: str = "") -> Iterator[_Statement]:
        """Yield the statements in the block that begin with a word, and a kind."""
        for each in self.block:
            if each.words[0] == word and (not kind or each.words[1:2] == [kind]):
                yield each

    def value(self, word: str) -> str:
        """Return what the first statement of a word says, or its expression."""
        for each in self.named(word):
            if each.words[1:]:
                return each.words[1]
            return next((e.words[1] for e in each.named("Expression")), "")
        return ""


def read_resource(data: bytes, name: str) -> Resource:
    """Return the component in a resource.

    name: Of the file, for messages.

    Raises:
        ScriptError: It is not a resource, or nested too deeply.
    """
    if not data.startswith(HEAD):
        raise ScriptError(
            f"{name}: is not a component.rsc of Visual Components, which begins with "
            f"{HEAD.decode()}."
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    top = _parsed(text.partition("\n")[2], name)
    root = next(top.named("Node", "rSimResource"), None)
    if root is None:
        raise ScriptError(f'{name}: has no Node "rSimResource", which is a component.')
    variables = _Variables(root, name)
    scripts = root.named("Functionality", "rPythonKinematics")
    component = ComponentData(
        name=root.value("Name"),
        properties=variables.properties(),
        joints=tuple(_joints(root, variables)),
    )
    return Resource(component, next((each.value("Script") for each in scripts), ""))


def _parsed(text: str, name: str) -> _Statement:
    """Return all statements; those in blocks that are skipped are left out."""
    top = _Statement([""])
    open_blocks, skipped = [top], 0
    line: list[str] = []
    last = top

    def end_line() -> None:
        nonlocal line, last
        if line:
            last = _Statement(line)
            open_blocks[-1].block.append(last)
            line = []

    for token in _TOKEN.finditer(text):
        quoted, brace, end, word = token.groups()
        if brace == "{":
            if skipped:
                skipped += 1
                continue
            end_line()
            if last.words[0] in SKIPPED:
                skipped = 1
                continue
            open_blocks.append(last)
            if len(open_blocks) > RESOURCE_DEPTH.most:
                raise ScriptError(f"{name}: {RESOURCE_DEPTH.excess()}.")
        elif skipped:
            skipped -= brace == "}"
        elif brace == "}":
            end_line()
            if len(open_blocks) == 1:
                break  # what follows is not of the component
            last = open_blocks.pop()
        elif end:
            end_line()
        else:
            line.append(word if quoted is None else _unescaped(quoted))
    end_line()
    return top


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)


class _Variables:
    """The variables of a component, some of which are expressions of others."""

    def __init__(self, root: _Statement, name: str) -> None:
        self._file = name
        self._given: dict[str, _Statement] = {}
        for space in root.named("VariableSpace"):
            for each in space.named("Variable"):
                self._given.setdefault(each.value("Name"), each)

    def properties(self) -> dict[str, Value | PropertyData]:
        """Return the properties; others than plain values are left out."""
        found: dict[str, Value | PropertyData] = {}
        for name, variable in self._given.items():
            value = self._value(name, variable)
            if name and value is not None:
                found[name] = value
        return found

    def _value(self, name: str, variable: _Statement) -> Value | PropertyData | None:
        kind = variable.words[1] if variable.words[1:] else ""
        inner = kind.partition("<")[2].rstrip(">")
        if kind.startswith(("rExpression", "rTExpression")):
            return self.number(variable.value("Value"), f"property {quote(name)}")
        none: list[str] = []
        words = next((each.words[1:] for each in variable.named("Value")), none)
        value = _plain(inner, words)
        if value is None or not kind.startswith("rTStep"):
            return value
        steps = [
            _plain(inner, [each.value("Value")])
            for steps in variable.named("StepList")
            for each in steps.named("Step")
        ]
        plain = tuple(each for each in steps if each is not None)
        is_step = value in plain and len(plain) == len(steps)
        return PropertyData(value=value, step_values=plain) if is_step else value

    def number(self, expression: str, what: str) -> float | None:
        """Return the number of an expression; warn where it is not a simple one.

        what: What it is about, for the warning.
        """
        if not expression.strip():
            return None
        try:
            value = self._evaluated(expression, ())
        except (ValueError, ArithmeticError, SyntaxError, MemoryError, RecursionError):
            value = math.nan
        if math.isfinite(value):
            return value
        warn_user(
            f"{self._file}: {what} is {quote(expression)}, which is not a sum or "
            "product of properties that are numbers; it is left out."
        )
        return None

    def _evaluated(self, expression: str, within: tuple[str, ...]) -> float:
        if len(expression) > EXPRESSION_LENGTH.most or len(within) > len(self._given):
            raise ValueError(expression)
        names: dict[str, str] = {}

        def plain(match: re.Match[str]) -> str:
            return names.setdefault(match[0], f"x{len(names)}")

        tree = ast.parse(_NAME.sub(plain, expression.strip()), mode="eval")
        known = {short: name for name, short in names.items()}

        def value_of(node: ast.expr) -> float:
            match node:
                case ast.Constant(value=int() | float() as value):
                    return float(value)
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    return value_of(left) + value_of(right)
                case ast.BinOp(left=left, op=ast.Sub(), right=right):
                    return value_of(left) - value_of(right)
                case ast.BinOp(left=left, op=ast.Mult(), right=right):
                    return value_of(left) * value_of(right)
                case ast.BinOp(left=left, op=ast.Div(), right=right):
                    return value_of(left) / value_of(right)
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return -value_of(operand)
                case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                    return value_of(operand)
                case ast.Name(id=short):
                    return self._variable(known[short], within)
                case _:
                    raise ValueError(expression)

        return value_of(tree.body)

    def _variable(self, name: str, within: tuple[str, ...]) -> float:
        """Return the number of a variable, of which others are not within it."""
        variable = self._given.get(name)
        if variable is None or name in within:
            raise ValueError(name)
        return self._evaluated(variable.value("Value"), (*within, name))


def _plain(kind: str, words: list[str]) -> Value | None:
    """Return the value of a variable, None for one that scripts do not ask for."""
    try:
        match kind, words:
            case "rString", [text]:
                return text
            case "rBool", [text]:
                return text not in {"0", "false"}
            case "rInt", [text]:
                return int(text)
            case "rDouble", [text]:
                return float(text)
            case "rVector", [x, y, z, *_]:
                return float(x), float(y), float(z)
            case _:
                return None
    except ValueError:
        return None


def _joints(root: _Statement, variables: _Variables) -> Iterator[JointData]:
    """Yield the joints that the controller has, in its order; without one all."""
    found: dict[str, JointData] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        pending += reversed([*node.named("Node")])
        for each in node.named("Dof"):
            kind = KINDS.get(each.words[1] if each.words[1:] else "")
            name = each.value("Name")
            if kind is not None and name and name not in found:
                found[name] = _joint(each, kind, name, variables)
    order = [
        joint.words[2]
        for controller in root.named("Functionality", "rSimRobotController")
        for joints in controller.named("JointMap")
        for joint in joints.named("Joint")
        if len(joint.words) > 2
    ]
    names = [name for name in dict.fromkeys(order) if name in found] or list(found)
    starts = _starts(root, len(names))
    for name, start in zip(names, starts, strict=True):
        joint = found[name]
        home = start if start is None or joint.lower <= start <= joint.upper else None
        yield JointData(
            name=name,
            kind=joint.kind,
            min=joint.min,
            max=joint.max,
            home=home,
            speed=joint.speed,
        )


def _joint(dof: _Statement, kind: Any, name: str, variables: _Variables) -> JointData:
    limits = [
        variables.number(dof.value(limit), f"{limit} of joint {quote(name)}")
        for limit in ("MinLimit", "MaxLimit")
    ]
    speeds = [
        variable.value("Value")
        for properties in dof.named("Properties")
        for variable in properties.named("Variable")
        if variable.value("Name") == "MaxSpeed"
    ]
    speed = variables.number(speeds[0], f"MaxSpeed of joint {name}") if speeds else None
    low, high = limits
    return JointData(name=name, kind=kind, min=low, max=high, speed=speed)


def _starts(root: _Statement, count: int) -> list[float | None]:
    """Return the positions of joints in the property HOME of a robot."""
    for space in root.named("VariableSpace"):
        for each in space.named("Variable"):
            if each.value("Name") == HOME:
                try:
                    given = [float(text) for text in each.value("Value").split(";")]
                except ValueError:
                    break
                finite = [value if math.isfinite(value) else None for value in given]
                return [*finite, *([None] * count)][:count]
    return [None] * count
