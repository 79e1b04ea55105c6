"""The CPU backend: Numba loops over rows, on PyTorch's own threads.

``backend`` is what the registry knows, ``operator`` the PyTorch operators, ``passes`` the forward and the
backward pass; below these everything is compiled. Only ``passes`` and what it imports need Numba, which takes
a second to import.
"""
