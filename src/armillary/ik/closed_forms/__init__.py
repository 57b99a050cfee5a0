"""Inverse kinematics in closed form, one file for each family of arms."""

from __future__ import annotations
