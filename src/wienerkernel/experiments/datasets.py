"""Data sets for the examples and the tests."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray

__all__ = ["DataSet", "load_mcycle", "load_series"]

SERIES = ("lake_huron", "lynx", "nile", "sunspots")  # names of the time series


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
    return _read("mcycle")


def load_series(name: str) -> DataSet:
    """An annual time series.

    Parameters
    ----------
    name : {"lake_huron", "lynx", "nile", "sunspots"}
        - lake_huron: level of Lake Huron in feet, 1875 to 1972. Brockwell and Davis (1991), Time Series: Theory and
          Methods; ``LakeHuron`` of R.
        - lynx: number of lynx trapped in the Mackenzie River district, 1821 to 1934. Elton and Nicholson (1942), Journal of
          Animal Ecology 11; ``lynx`` of R.
        - nile: flow of the Nile at Aswan in 1e8 m^3, 1871 to 1970. Cobb (1978), Biometrika 65; ``Nile`` of R.
        - sunspots: mean number of sunspots, 1700 to 1988. Swiss Federal Observatory, Zurich; ``sunspot.year`` of R.

    Returns
    -------
    DataSet
        X holds the years, of shape (n, 1), y the values, of shape (n,).

    Examples
    --------
    >>> years, y = load_series("nile")
    >>> len(y), float(years[0, 0]), float(y[0])
    (100, 1871.0, 1120.0)
    """
    if name not in SERIES:
        raise ValueError(f"name must be one of {', '.join(SERIES)}, got {name!r}")
    return _read(name)


def _read(name: str) -> DataSet:
    text = (files(__package__) / "data" / f"{name}.csv").read_text(encoding="utf-8")
    table = np.loadtxt(text.splitlines(), delimiter=",", comments="#")
    return DataSet(table[:, :1].copy(), table[:, 1].copy())
