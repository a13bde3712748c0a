"""From checked data to a fitted model, for every kind of estimate; adding and removing samples."""

from .exact import PASSES
from .fit import fit, fit_stream
from .updates import add, drop

__all__ = ["PASSES", "add", "drop", "fit", "fit_stream"]
