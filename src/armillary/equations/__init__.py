"""Robotics written once, as Programs: model to trace."""

from __future__ import annotations
