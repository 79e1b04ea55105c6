"""The backends of p-Laplacian message passing.

``backend`` is the protocol that every one of them follows, and ``registry`` lists them. ``dense`` checks the
others, ``torch`` is plain PyTorch on any device, ``fused`` is Numba on the CPU, ``triton`` is for GPUs. What
they share is ``budget``: how a memory budget is met, and which states the backward pass keeps. The last two
differ in their kernels alone: ``row_backend``, ``row_operator`` and ``row_passes`` are theirs together, and
``penalty_code`` translates penalties for both.
"""
