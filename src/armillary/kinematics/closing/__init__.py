"""Passive joints of closed loops: solved for inside kernels, on a chosen branch."""
