"""The Gram matrix that is to be factorized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._typing import Array, FloatArray
from ..backend import arrays
from .blas import for_each
from .tiles import as_rows, center_of, row_blocks

if TYPE_CHECKING:
    from .base import Kernel

__all__ = ["gram"]


def gram(kernel: Kernel, X: Any, out: FloatArray | None = None) -> Array:
    """Lower triangle of the Gram matrix K(X, X): what a Cholesky factorization reads, and no more.

    Parameters
    ----------
    kernel : Kernel
    X : array-like of shape (n, d)
        Or an array of another library, such as a torch tensor on a GPU.
    out : ndarray of shape (n, n), optional
        C-ordered NumPy array of the dtype of X; receives the result.

    Returns
    -------
    K : ndarray of shape (n, n)
        C-ordered, in the library and on the device of X. The lower triangle and the diagonal hold K(X, X), the
        diagonal exactly `Kernel.diag`. What is above the diagonal has no meaning.
    """
    x = as_rows("X", X)
    n = x.shape[0]
    if out is not None and not _fits(out, x):
        raise ValueError(
            f"out must be a C-ordered array of NumPy, of shape ({n}, {n}) and dtype {x.dtype}; "
            f"got shape {tuple(out.shape)}, dtype {out.dtype}"
        )
    if n == 0:
        return arrays.filled((0, 0), 0.0, x) if out is None else out
    center = center_of(x)
    blocks = [(a, kernel._prepare(x[a, :], center)) for a in row_blocks(x)]
    if out is None and len(blocks) == 1:
        K = kernel._values(blocks[0][1], blocks[0][1])
    else:
        K = arrays.filled((n, n), 0.0, x) if out is None else out

        def fill(i: int) -> None:
            a, P = blocks[i]
            for b, Q in blocks[: i + 1]:
                K[a, b] = kernel._values(P, Q)

        for_each(fill, range(len(blocks))[::-1], x, len(blocks) * (len(blocks) + 1) // 2)
    return arrays.set_diagonal(K, kernel._diagonal(x))


def _fits(out: Array, x: Array) -> bool:
    """Whether out can take the Gram matrix of the rows x."""
    if not (arrays.is_numpy(out) and arrays.is_numpy(x)):
        return False
    return bool(out.shape == (len(x), len(x)) and out.dtype == x.dtype and out.flags.c_contiguous)
