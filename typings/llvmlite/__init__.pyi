# What armillary uses of llvmlite, which carries no types.

__version__: str
