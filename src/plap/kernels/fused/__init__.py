"""The CPU backend: Numba loops over rows, on PyTorch's own threads.

``backend`` is what the registry knows, ``operator`` the PyTorch operators, ``launcher`` runs the kernels;
below these everything is compiled. Only ``launcher`` and what it imports need Numba, which takes a second
to import.
"""
