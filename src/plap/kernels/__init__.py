"""The backends of p-Laplacian message passing.

``backend`` is the protocol that every one of them follows, and ``registry`` lists them. ``dense`` checks the
others, ``torch`` is plain PyTorch on any device, ``fused`` is Numba on the CPU. What they share is ``budget``
(how a memory budget is met) and ``activations`` (which states the backward pass keeps or recomputes).
"""
