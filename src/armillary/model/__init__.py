"""What a workcell is: frozen values, no files, no machine code."""

from __future__ import annotations
