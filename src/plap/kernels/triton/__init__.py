"""The GPU backend: Triton kernels whose programs own rows.

``backend`` is what the registry knows, ``operator`` the PyTorch operators, ``launcher`` runs the kernels.
Below these everything is compiled by Triton, or interpreted where TRITON_INTERPRET=1 was set before the
first import of Triton. Only ``launcher`` and what it imports need Triton, which is an optional extra.
"""
