"""Adapt docstrings to Sphinx: escape vertical bars such as |a|^2, and omit methods inherited from scikit-learn."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.*?``|`.*?`)")


def escape_bars(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Escape vertical bars outside literals and examples."""
    for number, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            parts = LITERAL.split(line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "".join(parts)


def skip_metadata_requests(
    _app: Sphinx, _what: str, name: str, _obj: Any, skip: bool, _options: Any
) -> bool | None:
    """Omit ``set_fit_request`` and similar methods, whose docstrings refer to pages of scikit-learn."""
    return True if re.fullmatch(r"set_\w+_request", name) else (skip or None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both handlers, after numpydoc."""
    app.connect("autodoc-process-docstring", escape_bars, priority=600)
    app.connect("autodoc-skip-member", skip_metadata_requests)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
