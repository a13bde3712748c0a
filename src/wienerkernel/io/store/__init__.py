"""Fitted models as files: one archive of JSON and plain arrays, nothing that could name code.

`save` writes a model whole or not at all, `load` gives it back without refitting: it predicts bit for bit what the
saved one did. A file may come from anywhere: whatever it holds, `load` answers with a model or a `FormatError`.
"""

from .archive import FormatError
from .model import load, save

__all__ = ["FormatError", "load", "save"]
