"""Digests of what a model was made from."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.sparse import scipy_from_tensor

Features: TypeAlias = "Tensor | scipy.sparse.sparray | scipy.sparse.spmatrix"

_ROWS = 4096


def features_digest(features: Features) -> str:
    """SHA-256 over the shape and the non-zero float32 values: equal features, dense or sparse, agree.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    >>> features_digest(x) == features_digest(x.to_sparse_csr())
    True
    """
    matrix = _rows(features)
    sha = hashlib.sha256(f"plap.sparse/1 {matrix.shape[0]} {matrix.shape[1]}".encode())
    for start in range(0, matrix.shape[0], _ROWS):
        part = scipy.sparse.csr_array(matrix[start : start + _ROWS]).astype(np.float32)
        part.sum_duplicates()
        part.eliminate_zeros()
        for values, dtype in ((part.indptr, "<i8"), (part.indices, "<i8"), (part.data, "<f4")):
            sha.update(np.ascontiguousarray(values, dtype=dtype).tobytes())
    return sha.hexdigest()


def _rows(features: Features) -> np.ndarray | scipy.sparse.csr_array:
    """Something whose rows can be cut out."""
    if not isinstance(features, Tensor):
        return scipy.sparse.csr_array(features)
    features = features.detach().cpu()
    if features.layout == torch.strided:
        return features.numpy()
    return scipy_from_tensor(features)
