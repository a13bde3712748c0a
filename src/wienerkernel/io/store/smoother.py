"""Smoothers as arrays: the samples and the factor as a packed triangle; or what an approximation keeps of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...backend.arrays import as_numpy
from ...backend.growable_cholesky import GrowableCholesky
from ...kernels import Kernel
from ...kernels.spectral import prior_variance
from ...scale import FeatureSmoother, NeighborSmoother
from ...scale.actions import ActionSmoother
from ...scale.inducing import Inducing
from ...scale.sums import Audit, Rows, Sums
from ...smoother import Smoother
from ...smoother.samples import Samples
from ...smoother.trend import TRENDS, Trend
from ...validation import SMALLEST, check_size, check_spans
from .archive import FormatError
from .nodes import COUNT, Array, Positive, Record, check_shape, choice, number, packed, unpacked

__all__ = ["RECORDS", "TREND", "check_factor", "check_finite", "check_index", "n_trend", "probes"]

CLOSE = {"float64": 1e-6, "float32": 1e-2}
"""Relative difference of numbers that are equal up to rounding, also after many updates of a factor."""

CORNER = 8
"""Inputs at which the kernel is evaluated as a check."""

LARGEST_COUNT = 2**53
TREND = choice(*TRENDS)


def n_trend(kind: str | None, n_features: int) -> int:
    """Number of functions of a trend."""
    return {None: 0, "constant": 1, "linear": 1 + n_features}[kind]


def probes(places: FloatArray) -> FloatArray:
    """Inputs at which predictions are tried: some of the data, their center, and such of ordinary size."""
    ordinary = np.tile([[-1.0], [0.0], [1.0]], places.shape[1])
    return np.concatenate([places[:CORNER], places.mean(axis=0, keepdims=True), ordinary])


def check_finite(*predictions: FloatArray) -> None:
    """Raise FormatError unless all predictions are finite."""
    if not all(np.all(np.isfinite(part)) for part in predictions):
        raise FormatError("the predictions are not finite")


def check_index(index: IntArray, n_places: int) -> None:
    """Raise FormatError unless each sample has a place, and each place a sample."""
    if not np.array_equal(np.unique(index), np.arange(n_places)):
        raise FormatError("index must assign every sample to a place, and every place a sample")


def check_factor(
    factor: FloatArray, kernel: Kernel, places: FloatArray, regularizer: FloatArray | float
) -> None:
    """The rows of L have the squared lengths K_ii + R_ii, and pivots far above the rounding of those."""
    lengths = np.einsum("ij,ij->i", factor, factor)
    expected = kernel.diag(places) + regularizer
    corner = kernel(places[:CORNER])  # fails for a kernel of another number of inputs
    close = np.allclose(lengths, expected, rtol=CLOSE[factor.dtype.name], atol=0)
    if not np.all(np.isfinite(corner)) or not close:
        raise FormatError("the factor does not belong to the kernel and the regularizer")
    if np.any(np.diagonal(factor) <= np.finfo(factor.dtype).eps ** 2 * np.sqrt(lengths)):
        raise FormatError("the diagonal of the factor must be positive")


def _parts_of(smoother: Smoother) -> dict[str, Any]:
    factor, grown = as_numpy(smoother.factor), smoother.growable is not None
    # A factor that has grown is a view of wider rows: the room to grow is kept.
    wider = grown and not factor.flags.c_contiguous
    return {
        "trend": smoother.trend.kind,
        "factor": packed(factor),
        "width": factor.strides[0] // factor.itemsize if wider else len(factor),
        # So is L^-1 H, whose last bits depend on the way in which it has grown.
        "whitened_trend": smoother.whitened_trend if grown and smoother.trend.kind == "constant" else None,
    }


def _smoother(
    kernel: Kernel,
    samples: Samples,
    targets: FloatArray,
    trend: str | None,
    factor: FloatArray,
    width: int,
    whitened_trend: FloatArray | None,
) -> Smoother:
    """The smoother, after its parts have been compared with each other."""
    n, d = samples.places.shape
    q = n_trend(trend, d)
    # Said before the trend's matrix, of any size, is made.
    if q > n:
        raise FormatError("model.json: the samples do not determine the trend")
    number(n, 2 * n + 128, int)(width, "width")
    memory = unpacked(factor, n, width)
    regularizer = samples.regularizer if samples.regularizer.ndim == 1 else np.diagonal(samples.regularizer)
    check_factor(memory[:n, :n], kernel, samples.places, regularizer)
    growable = None if width == n else GrowableCholesky(memory, n)
    smoother = Smoother(kernel, samples, targets, trend, memory[:n, :n], growable)
    if whitened_trend is not None:
        check_shape("whitened_trend", whitened_trend, q, n)
        close = CLOSE[whitened_trend.dtype.name] * np.max(np.abs(whitened_trend))
        if not np.allclose(whitened_trend, smoother.whitened_trend, rtol=0, atol=close):
            raise FormatError("whitened_trend does not belong to the factor")
        known = {"whitened_trend": whitened_trend}
        smoother = Smoother(kernel, samples, targets, trend, memory[:n, :n], growable, **known)
    check_finite(smoother.dual, smoother.trend_coefficients)
    return smoother


def _check_samples(samples: Samples) -> None:
    n, index, scale, count = len(samples.places), samples.index, samples.scale, samples.count
    check_index(index, n)
    check_size("places", samples.places, samples.places.dtype.name)
    if samples.row_regularizer.ndim != scale.ndim:
        raise FormatError("regularizer and scale must both be vectors or both be matrices")
    if scale.ndim == 2 and not np.array_equal(index, np.arange(n)):
        raise FormatError("samples with correlated noise must not be merged")
    if count is not None and (scale.ndim == 2 or count.min() < 1 or count.max() > LARGEST_COUNT):
        raise FormatError("count must be positive integers, of samples with independent noise")


# ---- approximations


def _check_approximate(smoother: Any) -> None:
    X = smoother.samples.places
    check_spans(X, np.zeros(1))
    if isinstance(smoother, NeighborSmoother):
        smoother.check_trend()
    check_finite(*smoother.predict(probes(X)))


def _check_features(smoother: FeatureSmoother) -> None:
    inducing, audit, sums = smoother.inducing, smoother.audit, smoother.sums
    q, m = inducing.number + n_trend(inducing.trend.kind, inducing.points.shape[1]), len(audit.frequencies)
    check_shape("audit", sums.audit, q, 2 * m)
    if m < 2 or audit.variance != prior_variance(inducing.kernel):
        raise FormatError("the frequencies do not belong to the kernel, or there are fewer than two")
    _check_approximate(smoother)


def _check_sums(sums: Sums) -> None:
    keys = sums.rows.keys
    if len(keys) > min(sums.n, sums.rows.number) or not np.all((keys >= 0) & (keys < 1)):
        raise FormatError("the random rows do not belong to the sums")


def _inducing(kernel: Kernel, points: FloatArray, factor: FloatArray, trend: str | None) -> Inducing:
    factor = unpacked(factor, len(points))
    check_factor(factor, kernel, points, 0.0)
    return Inducing(kernel, points, factor, Trend(trend, points))


def _sums(gram: FloatArray, targets: FloatArray, **parts: Any) -> Sums:
    triangle = unpacked(gram, len(targets), name="gram")
    return Sums(gram=triangle + np.tril(triangle, -1).T, targets=targets, **parts)


OF_SAMPLES = {
    "kernel": Kernel,
    "X": "n d",
    "targets": "n outputs",
    "regularizer": Positive("n", SMALLEST**2),
    "scale": Positive("n", SMALLEST),
    "trend": TREND,
}
RECORDS = [
    Record(
        Samples,
        {
            "places": "places d",
            "index": Array("n", dtype="i"),
            "row_regularizer": Positive("n", SMALLEST**2, matrix=True),
            "scale": Positive("n", SMALLEST, matrix=True),
            "count": Array("n", dtype="i", optional=True),
        },
        check=_check_samples,
    ),
    Record(
        Smoother,
        {
            "kernel": Kernel,
            "samples": Samples,
            "targets": "n outputs",
            "trend": TREND,
            "factor": Array("_", bounded=False),
            "width": COUNT,
            "whitened_trend": Array("_ _", bounded=False, optional=True),
        },
        take=_parts_of,
        make=_smoother,
    ),
    Record(NeighborSmoother, OF_SAMPLES | {"n_neighbors": number(2, 2**53, int)}, check=_check_approximate),
    Record(ActionSmoother, OF_SAMPLES | {"actions": "n actions"}, check=_check_approximate),
    Record(
        FeatureSmoother,
        {"inducing": Inducing, "audit": Audit, "sums": Sums, "ridge": number(SMALLEST**2, SMALLEST**-2)},
        check=_check_features,
    ),
    Record(
        Inducing,
        {"kernel": Kernel, "points": "points d", "factor": "_", "trend": TREND},
        take=lambda inducing: {"factor": packed(inducing.factor), "trend": inducing.trend.kind},
        make=_inducing,
    ),
    Record(Audit, {"frequencies": "m d", "weights": Positive("m", 1e-6), "variance": number()}),
    Record(
        Sums,
        {
            "rows": Rows,
            "n": COUNT,
            "gram": "_",
            "targets": "features outputs",
            "audit": "features _",
        },
        take=lambda sums: {"gram": packed(sums.gram)},
        make=_sums,
        check=_check_sums,
    ),
    Record(
        Rows,
        {"number": COUNT, "keys": "rows", "X": "rows d", "y": "rows outputs"}
        | {"scale": Positive("rows", SMALLEST)},
    ),
]
