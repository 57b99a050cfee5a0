"""Cells compiled for machines without Python: C headers, objects, sources."""
