"""Which pairs of links are tested for collision in a state."""
