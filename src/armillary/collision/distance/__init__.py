"""Distance of two shapes: formulas of pairs, iterations for the others."""
