"""Motions from one place to another: planned, shortened and proven."""
