"""Posteriors: a smoother with the law of its noise, or a law of the weights of coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...kernels import Kernel
from ...losses import FullPosterior, LossPosterior
from ...losses.convex import Loss
from ...losses.coordinates import Coordinates, Observed
from ...losses.propagation import Propagation, gaussian
from ...losses.sampling import METHODS, Draws
from ...losses.score import Score
from ...noise import Noise
from ...noise.level import Level
from ...posterior import Posterior
from ...posterior.input_noise import Linearization
from ...scale import ApproximatePosterior, FeatureSmoother, NeighborSmoother
from ...scale.actions import ActionSmoother
from ...smoother import Smoother
from ...smoother.trend import Trend
from ...transform import Transform
from ...validation import SMALLEST
from .archive import FormatError
from .level import check_level
from .nodes import FLAG, REAL, Array, Positive, Record, check_shape, choice, each, number, packed, unpacked
from .noise import moments_at_hand
from .smoother import TREND, check_factor, check_finite, check_index, n_trend, probes

__all__ = ["RECORDS"]

CLOSE = 1e-6
LONGEST_SETTING = 200


def _check_range(transform: Transform | None, samples: FloatArray) -> None:
    """The samples are finite on the scale of y."""
    if transform is not None and not np.all(np.isfinite(transform.inverse(samples))):
        raise FormatError("targets are outside the range of the transform")


def _check_linear(posterior: Posterior) -> None:
    smoother, scale, single = posterior.smoother, posterior.output_scale, posterior.single_output
    n_outputs = smoother.targets.shape[1]
    if n_outputs > 1 and (single or posterior.input_noise is not None):
        raise FormatError("single_output and noise on the inputs need a single output")
    if not single and (posterior.level is not None or posterior.transform is not None):
        raise FormatError("a noise level and a transform need a single output")
    if len(scale) != n_outputs or (n_outputs == 1 and scale[0] != 1):
        raise FormatError(f"output_scale must be {n_outputs} positive numbers, 1 for a single output")
    check_level(posterior.level, smoother.samples.places.shape[1])
    if posterior.input_noise is not None:
        check_shape("input_noise.curvature", posterior.input_noise.curvature, len(smoother.targets))
    if posterior.transform is not None and moments_at_hand(posterior.noise) is not None:
        _check_range(posterior.transform, posterior.observed())


def _linear(type_: type[Posterior], smoother: Any) -> Record:
    """Description of a model that is linear in y."""
    return Record(
        type_,
        {
            "smoother": smoother,
            "noise": Noise,
            "single_output": FLAG,
            "ridge_is_noise_variance": FLAG,
            "output_scale": each(number(1e-150, 1e150), 1),
            "level": Level | None,
            "transform": Transform | None,
            "input_noise": Linearization | None,
        },
        take=lambda posterior: {"output_scale": posterior.output_scale.tolist()},
        make=lambda output_scale, **parts: type_(output_scale=np.array(output_scale), **parts),
        check=_check_linear,
    )


def _coordinates(
    kernel: Kernel,
    places: FloatArray,
    trend: str | None,
    pivots: IntArray,
    factor: FloatArray,
    phi: FloatArray,
) -> Coordinates:
    r, basis = len(pivots), Trend(trend, places)
    if len(np.unique(pivots)) < r or not np.isin(pivots, np.arange(len(places))).all():
        raise FormatError("pivots must be different places")
    check_shape("phi", phi, len(places), r + n_trend(trend, places.shape[1]))
    factor = unpacked(factor, r)
    check_factor(factor, kernel, places[pivots], 0.0)
    lengths, prior = np.einsum("ij,ij->i", phi[:, :r], phi[:, :r]), kernel.diag(places)
    if not np.all(lengths <= prior * (1 + CLOSE)) or not np.allclose(phi[:, r:], basis(places)):
        raise FormatError("the features do not belong to the kernel and the trend")
    return Coordinates(kernel, places, basis, pivots, factor, phi)


def _propagation(coordinates: Coordinates, observed: Observed, **parts: Any) -> Propagation:
    found = Propagation(coordinates, _placed(observed, coordinates), **parts)
    normal = gaussian(coordinates, found.observed, found.tau, found.nu)
    if normal is None or not np.all(np.isfinite(normal.mean)):
        raise FormatError("the sites do not belong to a proper posterior")
    return found


def _placed(observed: Observed, coordinates: Coordinates) -> Observed:
    check_index(observed.index, len(coordinates.places))
    return replace(observed, places=coordinates.places)


def _full_posterior(level: Any, transform: Any, **parts: Any) -> Any:
    return _scaled(FullPosterior(**parts), level, transform)


def _loss_posterior(level: Any, transform: Any, **parts: Any) -> Any:
    if (parts["loss"].law == "influence") != (parts["draws"] is None):
        raise FormatError("the law of the estimate does not belong to the loss")
    parts["observed"] = _placed(parts["observed"], parts["coordinates"])
    return _scaled(LossPosterior(**parts), level, transform)


def _scaled(posterior: Any, level: Level | None, transform: Transform | None) -> Any:
    posterior.level, posterior.transform = level, transform
    return posterior


def _check_nonlinear(posterior: Any) -> None:
    places = posterior.coordinates.places
    if len(posterior.setting) > LONGEST_SETTING:
        raise FormatError("setting must be a short text")
    check_level(posterior.level, places.shape[1])
    mean, parts = posterior.mean_and_uncertainty(probes(places))
    check_finite(mean, parts.total)
    # without those far from the data
    _check_range(posterior.transform, np.append(posterior.observed.y, mean[:-3]))


POSITIVE, DIAGNOSTIC = number(np.nextafter(0, 1)), number(0.0, np.inf)
SCALES = {"level": Level | None, "transform": Transform | None}
RECORDS = [
    _linear(Posterior, Smoother),
    _linear(ApproximatePosterior, NeighborSmoother | ActionSmoother | FeatureSmoother),
    Record(
        LossPosterior,
        {
            "setting": str,
            "noise": Noise,
            "coordinates": Coordinates,
            "observed": Observed,
            "loss": Loss,
            "score": Score,
            "lam": POSITIVE,
            "kkt": DIAGNOSTIC,
            "estimate": "features",
            "draws": Array("_ features", optional=True),
            **SCALES,
        },
        take=lambda posterior: {"draws": getattr(posterior.weights, "draws", None)},
        make=_loss_posterior,
        check=_check_nonlinear,
    ),
    Record(
        FullPosterior,
        {"setting": str, "propagation": Propagation, "draws": Draws | None} | SCALES,
        make=_full_posterior,
        check=_check_nonlinear,
    ),
    Record(
        Coordinates,
        {
            "kernel": Kernel,
            "trend": TREND,
            "pivots": Array("pivots", dtype="i"),
            "places": "places d",
            "factor": "_",
            "phi": "places features",
        },
        take=lambda found: {"trend": found.trend.kind, "factor": packed(found.factor)},
        make=_coordinates,
    ),
    Record(
        Observed,
        {"y": "n", "scale": Positive("n", SMALLEST), "index": Array("n", dtype="i")},
        make=lambda **parts: Observed(places=np.empty((0, 0)), **parts),
    ),
    Record(Score, {"center": number()} | dict.fromkeys(("square", "slope", "freedom"), POSITIVE)),
    Record(
        Propagation,
        {
            "coordinates": Coordinates,
            "observed": Observed,
            "noise": Noise,
            "residual": DIAGNOSTIC,
            "sweeps": number(0, 2**53, int),
            "power": number(np.nextafter(0, 1), 1.0),
            "log_evidence": REAL,
            "tau": Array("n", bounded=False),
            "nu": Array("n", bounded=False),
        },
        make=_propagation,
    ),
    Record(
        Draws,
        dict.fromkeys(("r_hat", "effective"), DIAGNOSTIC)
        | {"weights": "_ features", "method": choice(*METHODS)},
    ),
]
