"""`armillary explain`: what the ids of findings mean, and their mend."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import Any

from armillary.cli.spelling import spoken
from armillary.formats.findings import Finding, explained, findings

WIDTH = 88
INDENT = "    "


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "explain",
        help="what the ids of findings mean, and their mend",
        description="Tell what findings of an id mean, and how to mend them; without "
        "one, list all ids. The id stands in brackets: error[two-roots].",
    )
    parser.add_argument("id", metavar="ID", nargs="*", help="such as two-roots")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the explanations."""
    codes: list[str] = options.id or sorted(findings())
    for code in codes:
        for line in explanation(code, explained(code)):
            print(line)
    return 0


def explanation(code: str, finding: Finding) -> Iterator[str]:
    """Yield the lines that tell what an id means."""
    yield f"{code}:"
    for text in (finding.meaning, finding.mend):
        yield from textwrap.wrap(
            spoken(text),
            WIDTH,
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )
