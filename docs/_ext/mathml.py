"""Render formulas as MathML, which browsers support without scripts, fonts or network access.

docutils does the conversion; Sphinx has no renderer that uses it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def inline(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(f'<span class="math">{tex2mathml(node.astext(), as_block=False)}</span>')
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
