"""The plain PyTorch backend, on any device.

``chunked`` works in bounded memory; ``autograd_ops`` is differentiable any number of times; ``backend``
chooses between these two.
"""
