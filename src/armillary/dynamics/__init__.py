"""Dynamics of a cell: forces, masses and energies of bodies that joints move."""
