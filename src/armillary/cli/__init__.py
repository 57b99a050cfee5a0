"""The command line: one file per verb, no logic that belongs below."""

from __future__ import annotations
