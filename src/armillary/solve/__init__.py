"""Questions to results: the only place where model, equations and kernels meet."""

from __future__ import annotations
