"""From data to a model whose estimate is not linear in y."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray, RandomState
from ..kernels import Kernel
from ..noise import Noise
from ..noise.base import as_generator
from ..text import check_choice
from .coordinates import Coordinates, Observed
from .estimate import fit_loss, spectrum
from .posterior import CoordinatePosterior, FullPosterior
from .propagation import REACHED, propagate
from .sampling import CERTIFIED, posterior_draws
from .score import as_loss

__all__ = ["INFERENCES", "check_setting", "condition", "is_linear"]

INFERENCES = (None, "ep", "bayes")
SQUARED = "squared"
NOT_OPTIMAL = 1e-8
"""Violation of the optimality conditions that is worth a warning."""


def is_linear(loss: Any, inference: Any) -> bool:
    """Whether the estimate is linear in y."""
    return inference is None and isinstance(loss, str) and loss == SQUARED


def check_setting(loss: Any, inference: Any, ridge: Any, scale: FloatArray) -> None:
    """Raise ValueError for settings and data that only the linear estimate supports."""
    check_choice("inference", inference, INFERENCES)
    if is_linear(loss, inference):
        return
    if inference is not None and not is_linear(loss, None):
        raise ValueError(
            f"loss and inference exclude each other: got loss={loss!r} and inference={inference!r}"
        )
    if inference is not None and ridge is not None:
        raise ValueError(
            f"with inference={inference!r}, the noise takes the place of the ridge: set ridge=None"
        )
    if scale.ndim == 2:
        raise ValueError("loss and inference need independent noise: noise_scale must have shape (n,)")


def condition(
    kernel: Kernel,
    noise: Noise,
    X: FloatArray,
    y: FloatArray,
    scale: FloatArray,
    *,
    trend: str | None,
    loss: Any,
    inference: str | None,
    ridge: float | None,
    random_state: RandomState = None,
) -> CoordinatePosterior:
    """The model for given kernel and noise; what did not converge is told in a ConvergenceWarning."""
    observed = Observed.of(X, y, scale)
    coordinates, generator = Coordinates.at(kernel, observed.places, trend), as_generator(random_state)
    if inference is None:
        chosen = as_loss(loss, noise, spectrum(coordinates, observed))
        setting = f"loss={loss!r}"
        model = fit_loss(
            coordinates, observed, noise, chosen, setting=setting, ridge=ridge, generator=generator
        )
        if model.kkt > NOT_OPTIMAL:
            message = f"the minimum of the loss was not found: the optimality conditions are violated by {model.kkt:.1e}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        return model
    found = propagate(coordinates, observed, noise)
    draws = posterior_draws(found, generator) if inference == "bayes" else None
    if draws is not None and not draws.certified:
        message = (
            f"the draws from the posterior are not certified: R-hat is {draws.r_hat:.3f}, more than {CERTIFIED:g}, and "
            f"the effective sample size about {draws.effective:.0f}"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
    if draws is None and not found.converged:
        message = (
            f"expectation propagation did not converge: after {found.sweeps} sweeps a marginal is off by "
            f"{found.residual:.2g} standard deviations, more than {REACHED:g}"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
    return FullPosterior(f"inference={inference!r}", found, draws)
