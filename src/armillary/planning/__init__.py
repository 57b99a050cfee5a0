"""Motions from A to B: planned and proven paths, and tools on lines and arcs."""
