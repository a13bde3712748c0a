"""Sphinx configuration. Neither the build nor the pages need network access."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # set before NumPy is imported; the examples are small
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import wienerkernel


def changelog(markdown: str) -> str:
    """CHANGELOG.md, which has headings, lists and links only, as reStructuredText."""
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", markdown)
    for level, line in (("#", "="), ("##", "-"), ("###", "~")):
        heading = re.compile(rf"^{level} \[?([^\]\n]+)\]?(.*)$", re.MULTILINE)
        text = heading.sub(lambda m, line=line: f"{m[1]}{m[2]}\n{line * len(m[1] + m[2])}", text)
    return text


def benchmark_results(folder: Path) -> str:
    """A page with all outputs of benchmarks, as they are."""
    title = "Benchmark results"
    text = (
        f"{title}\n{'=' * len(title)}\n\nThe outputs of the benchmarks as their scripts print them: the files in "
        "`benchmarks/results`. :doc:`benchmarks` discusses them. Targets were set before the measurement; missed ones are "
        "shown, too.\n"
    )
    for file in sorted(folder.glob("*.txt")):
        script = file.with_suffix(".py").name
        command = f"`python benchmarks/{script}`\n\n" if (folder.parent / script).exists() else ""
        text += f"\n{file.name}\n{'-' * len(file.name)}\n\n{command}"
        text += f".. literalinclude:: ../benchmarks/results/{file.name}\n   :language: none\n"
    return text


(HERE / "benchmark_results.rst").write_text(benchmark_results(HERE.parent / "benchmarks" / "results"))
(HERE / "changelog.rst").write_text(changelog((HERE.parent / "CHANGELOG.md").read_text()))

project = "wienerkernel"
author = "The wienerkernel developers"
copyright = author
version = release = wienerkernel.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "docstrings",
    "mathml",
    "offline",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "figures"]
templates_path = ["_templates"]
nitpicky = True
default_role = "literal"

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are given in the numpydoc sections
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "write_computation_times": False,
    "backreferences_dir": "api/backreferences",
    "remove_config_comments": True,
    "doc_module": ("wienerkernel",),
    "thumbnail_size": (400, 280),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}
plot_formats = [("png", 150)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"wienerkernel {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    page: []
    for page in (
        "index",
        "getting_started",
        "tutorials",
        "benchmarks",
        "benchmark_results",
        "glossary",
        "changelog",
    )
}
html_theme_options = {
    "logo": {"text": "wienerkernel"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"*": ["page-toc"], "api/**": ["page-toc"], "auto_examples/**": []},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
