"""Nearest neighbors and their weights in batches of query points: on a GPU, for data in arrays of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import factorized
from ..kernels import Kernel

__all__ = ["krige", "nearest", "weigh"]

DISTANCES = 2**27
"""Distances that are computed at a time, 1 GiB."""
BATCH, GROUP = 512, 8
"""Query points that are solved at a time, and those whose neighbors share one call of the kernel."""


def nearest(X: FloatArray, data: Array, units: FloatArray, number: int) -> IntArray:
    """Indices of the rows of ``data`` nearest to the rows of X in the given units, nearest first: (m, number)."""
    import torch

    unit = arrays.like(units, data)
    scaled, queries = data / unit, arrays.like(X, data) / unit
    found = [
        torch.topk(torch.cdist(part, scaled), min(number, len(data)), largest=False).indices
        for part in torch.split(queries, max(1, DISTANCES // len(data)))
    ]
    return np.asarray(torch.concat(found).cpu())


def weigh(
    kernel: Kernel,
    X: FloatArray,
    near: FloatArray,
    regularizer: FloatArray,
    basis: FloatArray,
    near_basis: FloatArray,
    data: Array,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (m, N), V + P2 (m,), and V + P2 of the nearer half of the neighbors (m,).

    ``near`` are the neighbors (m, N, d), and ``basis`` (m, q) and ``near_basis`` (m, N, q) the values of the trend.
    """
    import torch

    def on_device(values: Any) -> Any:
        return arrays.like(values, data)

    found = []
    for part in arrays.slices(len(X), BATCH):
        matrix, cross = _kernel_blocks(kernel, on_device(X[part]), on_device(near[part]))
        matrix.diagonal(dim1=1, dim2=2).add_(on_device(regularizer[part]))
        factor = factorized(matrix)
        sides = torch.concat([cross[:, None, :], on_device(near_basis[part]).mT], dim=1)
        sides = torch.linalg.solve_triangular(factor, sides.mT, upper=False).mT
        prior, h = on_device(kernel.diag(X[part])), on_device(basis[part])
        white, total = krige(sides, prior, h)
        half = krige(sides[:, :, : max(sides.shape[2] // 2, 1)], prior, h)[1]
        weights = torch.linalg.solve_triangular(factor.mT, white[:, :, None], upper=True)[:, :, 0]
        found.append([arrays.as_numpy(values) for values in (weights, total, half)])
    weights, total, half = zip(*found, strict=True)
    return np.concatenate(weights), np.concatenate(total), np.concatenate(half)


def _kernel_blocks(kernel: Kernel, X: Array, near: Array) -> tuple[Any, Any]:
    """Kernel matrices of the neighbors of each query point, (m, N, N), and of these with the query point, (m, N)."""
    import torch

    matrices, cross = [], []
    for queries, rows in zip(torch.split(X, GROUP), torch.split(near, GROUP), strict=True):
        g, n, d = rows.shape
        flat = rows.reshape(g * n, d)
        # of all pairs of neighbors, those of the same query point are kept: few large calls are faster than many small ones
        matrices.append(kernel(flat, flat).reshape(g, n, g, n).diagonal(dim1=0, dim2=2).permute(2, 0, 1))
        cross.append(kernel(queries, flat).reshape(g, g, n).diagonal(dim1=0, dim2=1).T)
    return torch.concat(matrices), torch.concat(cross)


def krige(sides: Array, prior: Array, basis: Array) -> tuple[Array, Array]:
    """L'a (m, N) and V + P2 (m,) from the rows L^-1 k and L^-1 H of each query point, (m, 1 + q, N), in any library.

    V + P2 is k - k'Ak + d'(H'AH)^-1 d, for ``prior`` k(x, x) (m,) and ``basis`` h(x) (m, q).
    """
    v, trend = sides[:, 0], sides[:, 1:]
    variance = prior - (v * v).sum(1)
    if not trend.shape[1]:
        return v, variance
    mismatch = basis - (trend @ v[:, :, None])[:, :, 0]
    # the pseudo-inverse: neighbors that determine the trend at x need not determine all of its coefficients
    inverse = arrays.namespace(sides).linalg.pinv(trend @ trend.mT, rtol=1e-12, hermitian=True)
    solved = (inverse @ mismatch[:, :, None])[:, :, 0]
    return v + (solved[:, None, :] @ trend)[:, 0], variance + (mismatch * solved).sum(1)
