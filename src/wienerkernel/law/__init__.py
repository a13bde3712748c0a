"""The law of a linear combination of independent noise variables: density, distribution function, quantiles, draws.

How a quantile is computed, starting from ``WienerKernelRegressor.predict_interval``::

    PredictiveDistribution.ppf     posterior/: mean, noise weights a(x) and model variance at each x
    LinearCombination.ppf          checks, broadcasts, warns             linear_combination.py
    Batch.quantile                 Y = start + scale X, in blocks        batch.py
    Block.quantile                 a start, then Newton in a bracket     batch.py, quantile.py
    an Inversion                   F(x) for given x                      the one that dispatch.py chose

An inversion is a closed form (closed), a sum over atoms (atoms), a convolution (convolution, components, with
pieces), or an inverse transform (contour, fourier, graded). Inverse transforms get log phi of the rows from rows.py and
terms.py, which sum over the weights by tables (ray_table), and end in the sums of ray.py.
Where phi decays slowly, singular points of the density give it at high frequencies (corners, corner_tail).
saddle.py gives light tails their relative accuracy.
"""

from __future__ import annotations

from .linear_combination import AccuracyWarning, LinearCombination

__all__ = ["AccuracyWarning", "LinearCombination"]
