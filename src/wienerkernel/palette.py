"""Names and colors of the causes of uncertainty and of what is predicted, in all texts, figures and pages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["CAUSES", "COLORS", "LAWS", "LIGHT", "pyplot"]

CAUSES = {
    "noise": "noise in the data",
    "input": "noise on the inputs",
    "model": "unexplored inputs",
    "computational": "approximate solution",
    "aleatoric": "noise of the observation",
}
"""The causes of uncertainty: attributes of `Uncertainty`, and what figures and texts call them."""

LAWS = {"estimate": "estimate", "function": "function value", "observation": "new observation"}
"""What can be predicted; each law has one more cause of uncertainty than the one before."""

COLORS = {
    "estimate": ("#4dbf9c", "#17926f"),
    "function": ("#9ccbec", "#2f6fa0"),
    "observation": ("#e1e4e9", "#3c444f"),
    "estimate-line": ("#00805d", "#35d0a2"),
    "function-line": ("#0072b2", "#6cbdf5"),
    "observation-line": ("#767e89", "#aab2be"),
    "mean": ("#c44f00", "#ff9d5c"),
    "truth": ("#7b2d8e", "#d59be6"),
    "computational": ("#cc79a7", "#b05a8c"),
    "initial": ("#f0d9a8", "#7a6233"),
    "text": ("#1b1f24", "#e8eaed"),
}
"""One color per cause and its law, for areas and lines, on light and on dark pages.

After Okabe and Ito, and apart in lightness as well, so that color-blind readers and gray prints can tell them apart.
"""
LIGHT = {name: light for name, (light, _) in COLORS.items()}
"""The colors on light pages, as in all figures."""


def pyplot() -> Any:
    """The module ``matplotlib.pyplot``, loaded when it is needed."""
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'wienerkernel[plot]'") from error
