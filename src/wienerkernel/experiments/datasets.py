"""Data sets for the examples and the tests."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray

__all__ = ["DataSet", "load_mcycle"]


class DataSet(NamedTuple):
    """Inputs and outputs.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)

    Examples
    --------
    >>> X, y = DataSet(np.zeros((3, 1)), np.ones(3))
    >>> X.shape, y.shape
    ((3, 1), (3,))
    """

    X: FloatArray
    y: FloatArray


def load_mcycle() -> DataSet:
    """Head acceleration (in g) against time after impact (in ms) in a simulated motorcycle accident.

    133 rows at 94 distinct times. Silverman (1985), Some aspects of the spline smoothing approach to non-parametric
    regression curve fitting, Journal of the Royal Statistical Society B 47, 1-52; as in the data set ``mcycle`` of the
    R package MASS.

    Returns
    -------
    DataSet
        X of shape (133, 1), y of shape (133,).

    Examples
    --------
    >>> X, y = load_mcycle()
    >>> X.shape, float(y.min())
    ((133, 1), -134.0)
    """
    text = (files(__package__) / "data" / "mcycle.csv").read_text(encoding="utf-8")
    table = np.loadtxt(text.splitlines(), delimiter=",", comments="#")
    return DataSet(table[:, :1].copy(), table[:, 1].copy())
