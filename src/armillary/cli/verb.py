"""A verb of the command line: a table of options, and what it does with them.

Help, usage errors, completion in shells, numbers that begin with a minus sign and `-`
for stdin all follow from the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from armillary.errors import quote

__all__ = [
    "OneOf",
    "Option",
    "Options",
    "Run",
    "Verb",
    "option",
    "verb",
    "whole_number",
]

Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option or an argument.

    Attributes:
        name: As it is written; that of an argument does not begin with `-`.
        settings: What `ArgumentParser.add_argument` takes beside the name.
        has_numbers: Whether it takes a list of numbers, which may begin with `-`.
        is_input: Whether it names a file to read, which may be `-` for stdin.
    """

    name: str
    settings: dict[str, Any]
    has_numbers: bool = False
    is_input: bool = False

    @property
    def dest(self) -> str:
        """Return the name of its value among the parsed options."""
        return self.settings.get("dest") or self.name.strip("-").replace("-", "_")

    @property
    def default(self) -> Any:
        """Return its value where it is not given."""
        is_switch = self.settings.get("action") == "store_true"
        return self.settings.get("default", False if is_switch else None)

    def add(self, parser: Any) -> None:
        """Add it to a parser, or to a group of options of one."""
        parser.add_argument(self.name, **self.settings)


@dataclass(frozen=True)
class OneOf:
    """Options of which at most one may be given, or exactly one."""

    options: tuple[Option, ...]
    required: bool = False

    def add(self, parser: Any) -> None:
        """Add them to a parser as a group."""
        group = parser.add_mutually_exclusive_group(required=self.required)
        for each in self.options:
            each.add(group)


Options = Sequence[Option | OneOf]


def option(
    usage: str,
    help: str | None = None,
    *,
    has_numbers: bool = False,
    is_input: bool = False,
    **settings: Any,
) -> Option:
    """Return an option, see `Option`.

    Args:
        usage: Its name and what stands for its value, as in `--seed S`.
        help: What is said of it.
        has_numbers: See `Option`.
        is_input: See `Option`.
        settings: What `ArgumentParser.add_argument` takes, but for these.
    """
    name, _, metavar = usage.partition(" ")
    if metavar:
        settings["metavar"] = metavar
    return Option(
        name=name,
        settings={"help": help, **settings},
        has_numbers=has_numbers,
        is_input=is_input,
    )


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb.

    Attributes:
        name: As it is typed.
        description: All about it.
        table: Its options, in the order of the help.
        run: What it does; it returns the exit code.
    """

    name: str
    description: str
    table: Options
    run: Run

    @property
    def options(self) -> Iterator[Option]:
        """Yield its options, also those in groups."""
        for each in self.table:
            yield from each.options if isinstance(each, OneOf) else (each,)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add its description and options to its parser."""
        parser.description = self.description
        for each in self.table:
            each.add(parser)
        parser.set_defaults(verb=self)


def verb(name: str, table: Options, *, description: str) -> Callable[[Run], Verb]:
    """Return a decorator that makes a function a verb, see `Verb`."""

    def decorated(run: Run) -> Verb:
        return Verb(name=name, description=description, table=table, run=run)

    return decorated


def whole_number(least: int) -> Callable[[str], int]:
    """Return the type of an option that takes an integer from `least` on."""

    def number(text: str) -> int:
        if not (text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(
                f"{quote(text)} is not an integer of at least {least}"
            )
        return int(text)

    return number
