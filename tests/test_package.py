"""The package as users see it: import, names, command line."""

import subprocess
import sys

import pytest

import wienerkernel


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_loads_neither_scipy_stats_nor_matplotlib():
    result = python(
        "import sys, wienerkernel; print([m for m in ('scipy.stats', 'matplotlib', 'sklearn') if m in sys.modules])"
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_kernels_and_noise_load_without_scikit_learn_and_scipy_stats():
    code = "import sys; from wienerkernel import RBF, Residuals; print([m for m in ('scipy.stats', 'sklearn') if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    for name in wienerkernel.__all__:
        assert getattr(wienerkernel, name).__doc__, name
        assert name in dir(wienerkernel)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Gauss'"):
        _ = wienerkernel.Gauss


def test_a_user_error_on_the_command_line_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    code = f"import sys; sys.argv = ['wienerkernel', 'paper', '--out', {str(tmp_path / 'file')!r}]; from wienerkernel.cli import main; main()"
    result = python(code)
    assert result.returncode == 1
    assert result.stderr.startswith("wienerkernel: ")
    assert "Traceback" not in result.stderr
