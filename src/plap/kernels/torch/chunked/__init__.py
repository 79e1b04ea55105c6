"""Plain PyTorch in bounded memory: edges are taken in chunks, and the backward pass is the closed form.

Nothing of size edges × channels exists, forward or backward, on any device. Once a graph's chunks are known,
nothing is copied to the host.
"""
