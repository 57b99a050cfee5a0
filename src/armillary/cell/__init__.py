"""The cell and its devices: what users ask, each question handed to a layer below."""
