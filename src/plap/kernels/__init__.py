"""Backends of p-Laplacian message passing, each one function of one signature.

``dense`` is the oracle of the tests, ``torch_ops`` plain PyTorch on any device, ``fused`` Numba on the CPU.
"""
