"""Fourier inversion as a sum over nodes on a ray t = r e^{-i theta}: what most methods end in."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from .._typing import FloatArray, IntArray
from .rows import Rows

__all__ = ["Inversion", "RaySum", "Values"]

CHUNK = 2**18
EPS = float(np.finfo(float).eps)


class Values(NamedTuple):
    """Density, distribution function, survival function and their errors at (rows, k) points."""

    pdf: FloatArray
    cdf: FloatArray
    sf: FloatArray
    error: FloatArray
    pdf_error: FloatArray


class Inversion(Protocol):
    """The law of standardised rows, prepared by one method.

    ``relative`` says whether the small tail has relative accuracy already.
    """

    relative: bool

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index`` of shape (n,)."""


class RaySum:
    """Quadrature of the inversion integrals on one ray, for all rows.

    f(x) = Re int e^{-itx} phi(t) dt / pi,  F(x) = 1/2 - (Im int e^{-itx} phi(t) dt/t - theta) / pi

    Parameters
    ----------
    rows : Rows
    r : ndarray of shape (K,)
        Nodes, increasing.
    step : ndarray of shape (K,)
        Their weights, for integrals over r.
    theta : float
        Angle of the ray, with the sign of the points that it serves; 0 serves all.
    alias : ndarray of shape (rows,), optional
        Known bound on the error of the step. By default it is estimated: every second node alone has an error d,
        and halving the step squares the error.
    """

    def __init__(
        self, rows: Rows, r: FloatArray, step: FloatArray, theta: float, alias: FloatArray | None = None
    ) -> None:
        logcf = rows.logcf_on_ray(r, theta)
        gone = ~np.isfinite(logcf)
        self.log_modulus = np.where(gone, -745.0, np.maximum(logcf.real, -745.0))
        self.phase = np.where(gone, 0.0, logcf.imag)
        self.modulus = np.exp(self.log_modulus)
        self.r, self.theta, self.alias = r, theta, alias
        self.step = step / np.pi

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        width = max(1, CHUNK // max(1, len(x) * len(self.r)))
        parts = [self._block(x[:, i : i + width], index) for i in range(0, x.shape[1], width)]
        return Values(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))

    def _block(self, x: FloatArray, index: IntArray) -> Values:
        cos, sin = np.cos(self.theta), np.sin(self.theta)
        last = len(self.r)
        if self.theta:  # nodes past e^{-40} contribute nothing
            damping = np.min(x * sin, initial=np.inf)
            last = min(last, int(np.searchsorted(self.r * damping, 40.0)) + 2)
        r, step = self.r[:last], self.step[:last]
        rx = r * x[..., None]
        modulus = self.modulus[index, None, :last]
        if self.theta:
            modulus = np.exp(self.log_modulus[index, None, :last] - sin * rx)
        # e^{i a} from tan(a/2): one transcendental function instead of two
        half = np.tan(0.5 * (self.phase[index, None, :last] - cos * rx))
        scaled = modulus / (1 + half * half)
        real, imag = scaled * (1 - half * half), scaled * (2 * half)
        over_r = step / r
        pdf = (real * cos + imag * sin) @ step
        excess = imag @ over_r - self.theta / np.pi
        tail = np.broadcast_to(modulus[..., -1], x.shape)
        error = EPS * (1 + modulus @ over_r) + tail
        pdf_error = EPS * (modulus @ step) + tail * r[-1]
        if self.alias is None:
            sign = np.where(np.arange(last) % 2, -1.0, 1.0)
            error = error + (imag @ (over_r * sign)) ** 2
            coarse = (real * cos + imag * sin) @ (step * sign)
            pdf_error = pdf_error + coarse**2 / np.maximum(np.abs(pdf), EPS)
        else:
            error = error + self.alias[index, None]
            pdf_error = pdf_error + self.alias[index, None]
        return Values(pdf, 0.5 - excess, 0.5 + excess, error, pdf_error)
