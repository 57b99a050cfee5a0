"""Plug-ins: what installed packages offer, what the user allows, what is imported.

Nothing here knows robots, and nothing is imported unless `load` is called.
"""

from __future__ import annotations

from armillary.plugins.advice import advice
from armillary.plugins.allowed import allowed_offers, checked_packages
from armillary.plugins.configuration import config_path, configured, own_content
from armillary.plugins.load import load
from armillary.plugins.offers import (
    JOINTS,
    POST_PROCESSORS,
    Offer,
    normal,
    offers,
)

__all__ = [
    "JOINTS",
    "POST_PROCESSORS",
    "Offer",
    "advice",
    "allowed_offers",
    "checked_packages",
    "config_path",
    "configured",
    "load",
    "normal",
    "offers",
    "own_content",
]
