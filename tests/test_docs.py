"""The documentation: every public name is in the reference and has an example."""

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wienerkernel
from wienerkernel.experiments import datasets

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.rst"))
SCRIPTS = sorted((DOCS.parent / "examples").glob("plot_*.py"))
PUBLIC = {name: getattr(module, name) for module in (wienerkernel, datasets) for name in module.__all__}


def reference():
    """Names that the autosummary tables of docs/api.rst list."""
    return re.findall(r"^   ([A-Za-z_][\w.]*)$", (DOCS / "api.rst").read_text(), re.MULTILINE)


def test_every_public_name_is_in_the_reference_once():
    listed = [name.rpartition(".")[2] for name in reference()]
    assert {name: listed.count(name) for name in PUBLIC} == dict.fromkeys(PUBLIC, 1)


def test_every_name_in_the_reference_exists():
    for name in reference():
        module, _, attribute = name.rpartition(".")
        home = __import__(f"wienerkernel.{module}", fromlist=[attribute]) if module else wienerkernel
        assert hasattr(home, attribute), name


def test_every_public_docstring_has_an_example():
    """The examples themselves run as doctests."""
    for name, public in PUBLIC.items():
        examples = re.search(r"^Examples\n-{8}\n(.*)", inspect.getdoc(public), re.MULTILINE | re.DOTALL)
        assert examples is not None, name
        assert ">>> " in examples[1], name


def test_pages_load_nothing_from_the_network():
    included = re.compile(r"^\s*\.\. (?:image|figure|raw|literalinclude)::\s*(\S+)", re.MULTILINE)
    for page in PAGES:
        for target in included.findall(page.read_text()):
            assert "://" not in target, page.name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_compile_and_say_what_they_show(script):
    code = compile(script.read_text(), str(script), "exec")
    title, line = (code.co_consts[0] or "").strip().splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_shows(page):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert failed == 0


def test_every_command_and_option_is_described():
    typer = pytest.importorskip("typer")
    from wienerkernel.cli.app import app

    page = (DOCS / "command_line.rst").read_text()
    for name, command in typer.main.get_command(app).commands.items():
        assert f"wienerkernel {name}" in page
        options = {
            option for parameter in command.params for option in parameter.opts if option.startswith("--")
        }
        assert {option for option in options - {"--help"} if option not in page} == set(), name


def test_the_page_on_the_command_line_shows_what_the_demo_prints(tmp_path):
    """Line by line, as broken on a terminal, up to the digits of numbers, which may depend on the machine."""
    pytest.importorskip("typer")
    code = "import sys; sys.argv = ['wienerkernel', 'demo', '--out', '.']; from wienerkernel.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr

    def plain(text):
        return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", text)).strip()

    blocks = re.findall(r"code-block:: console\n\n((?:   .*\n)+)", (DOCS / "command_line.rst").read_text())
    shown = {plain(line) for block in blocks for line in block.splitlines()}
    shown -= {"$ wienerkernel explore model.wk"}
    assert len(shown) > 15
    printed = plain(done.stdout + done.stderr)
    assert {line for line in shown if line not in printed} == set()
