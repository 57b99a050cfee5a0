"""The post-processors that exist, and those of plug-ins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from armillary.errors import ModelError, PluginError, quote, unknown
from armillary.plugins import POST_PROCESSORS, Offer, allowed_offers, load
from armillary.programs.post_processors.krl import KRL
from armillary.programs.post_processors.post_processor import PostProcessor
from armillary.programs.post_processors.rapid import RAPID
from armillary.programs.post_processors.trajectory import CSV, JSON
from armillary.programs.post_processors.urscript import URSCRIPT

__all__ = [
    "BUILT_IN",
    "LANGUAGES",
    "SUFFIXES",
    "offered_post_processor",
    "post_processor",
]

BUILT_IN: Final = {each.name: each for each in (URSCRIPT, KRL, RAPID, CSV, JSON)}
SUFFIXES: Final = tuple(each.suffix for each in BUILT_IN.values())
LANGUAGES: Final = tuple(each.suffix for each in (URSCRIPT, KRL, RAPID))
"""Endings that no file of a motion has."""


def post_processor(
    path: str | os.PathLike[str], language: str | None, plugins: Iterable[str]
) -> PostProcessor:
    """Return the post-processor for a file.

    Args:
        path: The file, whose ending chooses among those that are built in.
        language: Its name instead; only so one of a plug-in is chosen.
        plugins: Installed packages that may be imported for it.

    Raises:
        UnknownName: No post-processor has this name or ending, or a package offers
            no post-processor.
        ModelError: The file has another ending than the language.
        PluginError: The plug-in that offers it is broken, or several offer it.
    """
    suffix = Path(path).suffix.lower()
    if language is None:
        for each in BUILT_IN.values():
            if each.suffix == suffix:
                return each
        raise unknown(
            "ending of programs",
            suffix or os.fspath(path),
            SUFFIXES,
            hint="motion.write(path) writes all of a motion, to read again.",
        )
    found = BUILT_IN.get(language) or _offered(language, plugins)
    if found.suffix != suffix:
        raise ModelError(
            f"A program of {found.name} is in a file {found.suffix}, not in "
            f"{quote(os.fspath(path))}."
        )
    return found


def _offered(language: str, plugins: Iterable[str]) -> PostProcessor:
    """Return the post-processor of an allowed plug-in."""
    offered = allowed_offers(POST_PROCESSORS, plugins)
    offers = [offer for offer in offered if offer.tag == language]
    if not offers:
        raise unknown(
            "language of programs",
            language,
            [*BUILT_IN, *(offer.tag for offer in offered)],
            hint="Allow the package that offers another: plugins=['package'].",
        )
    first, *others = offers
    if others:
        named = " and ".join(offer.label for offer in offers)
        raise PluginError(
            f"Post-processor {quote(language)} is offered by the plug-ins {named}. "
            "Allow one of them."
        )
    return offered_post_processor(first)


def offered_post_processor(offer: Offer) -> PostProcessor:
    """Import what an allowed plug-in offers.

    Raises:
        PluginError: It cannot be imported, or is not a post-processor of this name.
    """
    made: Any = load(offer)
    if not isinstance(made, PostProcessor) or made.name != offer.tag:
        raise PluginError(
            f"Plug-in {offer.label} is broken: for post-processor {quote(offer.tag)} "
            f"it offers {quote(cast(object, made))}, not a PostProcessor of this name."
        )
    return made
