"""Motions from A to B: planned paths, and tools on lines and arcs."""
