"""Inverse kinematics: targets to joint positions, with reasons."""

from __future__ import annotations
