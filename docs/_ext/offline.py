"""Fail the build if a page loads a script, style sheet, font or image from the network."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

REMOTE = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^>]*>""")
IMPORTED = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"';]*""")


def check(app: Sphinx, exception: Exception | None) -> None:
    """Check the generated files."""
    if exception is not None or app.builder.format != "html":
        return
    for pattern, suffix in ((REMOTE, "html"), (IMPORTED, "css")):
        for page in sorted(Path(app.outdir).rglob(f"*.{suffix}")):
            if found := pattern.search(page.read_text(encoding="utf-8")):
                raise ExtensionError(f"{page} loads something from the network: {found[0]}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Run the check at the end of the build."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
