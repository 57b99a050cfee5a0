"""`armillary rules`: which pairs of links need no test for collision."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell, warn
from armillary.cli.options import JSON, MARGIN, SEED, WITHIN
from armillary.cli.table import table
from armillary.cli.verb import option, verb, whole_number
from armillary.errors import printable
from armillary.formats import registry
from armillary.model.display import plural
from armillary.model.link_pairs import Pairs
from armillary.model.link_pattern import is_exact
from armillary.model.rules import Rule, Rules
from armillary.sweeps.learned_rules import LEARNED

DESCRIPTION = """\
Find the pairs of links that need no test for collision: at random joint positions
within the limits, and at home. Print each with its reason: 'adjacent' for links that
share a joint, 'default' for links that touch at home, 'always' and 'never' for links
that touch in every sample or in none. With --out the cell is written with these rules,
or an SRDF beside the robot's own file.
"""


@verb(
    "rules",
    (
        *FILE,
        option(
            "--samples N",
            "how many joint positions (default: 10000)",
            type=whole_number(1),
            default=10_000,
        ),
        SEED,
        WITHIN,
        MARGIN,
        JSON,
        option("--out FILE", "robot.srdf, or a file of any format with rules"),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Find the pairs, print them, and write the cell."""
    cell = open_cell(options)
    rules = cell.learn_rules(
        samples=options.samples,
        seed=options.seed or 0,
        margin=options.margin,
        within=dict(options.within or ()),
    )
    ruled = cell.replace(rules=rules)
    pairs = ruled.pairs(ruled.home)
    listed = _listed(rules)
    if options.json:
        print(json.dumps(_object(ruled, pairs, listed)))
    else:
        for line in _lines(pairs, listed, options.samples):
            print(line)
    if options.out is not None:
        warn(
            registry.save(
                ruled.workcell,
                options.out,
                meshes=cell.meshes,
                motions=cell.motions,
            )
        )
        print(f"{printable(options.out)}: written", file=sys.stderr)
    return 0


def _listed(rules: Rules) -> list[Rule]:
    """Return the rules that leave out one pair, by their reasons."""
    order = {reason: k for k, reason in enumerate(LEARNED)}
    named = [r for r in rules.rules if not r.tested and is_exact(r.a) and is_exact(r.b)]
    return sorted(named, key=lambda rule: order.get(rule.reason, len(order)))


def _lines(pairs: Pairs, listed: list[Rule], samples: int) -> Iterator[str]:
    if listed:
        rows = ((rule.reason, rule.a, rule.b) for rule in listed)
        yield from table(("not tested", "link", "link"), rows)
        yield ""
    counts = Counter(rule.reason for rule in listed)
    counted = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    yield f"{plural(samples, 'sample')}: {counted or 'no pair is left out'}"
    yield f"{plural(len(pairs), 'pair')} tested of {plural(len(pairs.links), 'link')}"


def _object(cell: Cell, pairs: Pairs, listed: list[Rule]) -> dict[str, Any]:
    """Return what is printed as JSON."""
    return {
        "cell": cell.name,
        "tested": list(pairs),
        "untested": [
            {"links": (rule.a, rule.b), "reason": rule.reason} for rule in listed
        ],
    }
