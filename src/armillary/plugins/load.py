"""The only place where the code of a plug-in is imported."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from armillary.errors import PluginError, printable, quote
from armillary.plugins.offers import Offer

__all__ = ["load"]

_NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TARGET: Final = re.compile(rf"({_NAME})\s*:\s*({_NAME})")


def load(offer: Offer) -> Any:
    """Import what a package offers. Whether that is allowed is for the caller to know.

    Raises:
        PluginError: The import fails, or the package names nothing.
    """
    target = _TARGET.fullmatch(offer.target)
    if target is None:
        raise PluginError(
            f"Plug-in {offer.label} says that {offer.kind} {quote(offer.tag)} is at "
            f"{quote(offer.target)}, which is not of the form module:Name."
        )
    try:
        target_class: Any = import_module(target[1])
        for name in target[2].split("."):
            target_class = getattr(target_class, name)
    except (Exception, SystemExit) as error:  # whatever the code of others raises
        reason = printable(f"{type(error).__name__}: {error}")
        raise PluginError(
            f"Plug-in {offer.label} is broken: importing {offer.target} for "
            f"{offer.kind} {quote(offer.tag)} failed with {reason}"
        ) from error
    return target_class
