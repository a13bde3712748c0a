"""Fitted models as files: one archive of JSON and plain arrays, nothing that could name code.

`save` writes a model atomically; `load` returns it without refitting, with predictions equal bit for bit on the same
machine. A file may come from an untrusted source: `load` either returns a model or raises `FormatError`.
"""

from .archive import FormatError
from .model import load, load_any, load_system, save

__all__ = ["FormatError", "load", "load_any", "load_system", "save"]
