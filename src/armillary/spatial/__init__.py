"""Geometry on floats or traced scalars: poses, rotations, twists, inertia."""

from __future__ import annotations
