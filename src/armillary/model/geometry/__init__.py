"""Geometry of bodies, on arrays of floats: surfaces, hulls, bounds, moments."""
