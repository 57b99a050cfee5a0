"""Files to model and back, one file for each format."""
