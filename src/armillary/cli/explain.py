"""`armillary explain`: what the ids of diagnostics mean, and how to fix them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from armillary.cli.hints import with_options
from armillary.cli.verb import option, verb
from armillary.formats.diagnostic import Explanation, explained, explanations

WIDTH = 88
INDENT = "    "


@verb(
    "explain",
    (option("id ID", "such as two-roots", nargs="*"),),
    description="Say what an id of a diagnostic means, and how to fix it; without "
    "one, list all ids. The id is the word in brackets: error[two-roots].",
)
def run(options: argparse.Namespace) -> int:
    """Print the explanations."""
    codes: list[str] = options.id or sorted(explanations())
    for code in codes:
        for line in explanation(code, explained(code)):
            print(line)
    return 0


def explanation(code: str, explained_id: Explanation) -> Iterator[str]:
    """Yield the lines that say what an id means."""
    yield f"{code}:"
    for text in (explained_id.meaning, explained_id.fix):
        yield from textwrap.wrap(
            with_options(text),
            WIDTH,
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )
