"""The GPU benchmark also runs on a CPU, on small problems, and skips what does not fit in memory."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"

torch = pytest.importorskip("torch")
if not SCRIPT.exists():
    pytest.skip("the benchmarks are not part of the source distribution", allow_module_level=True)

SMALL = ["--device", "cpu", "--check", "30", "--queries", "5", "--repeats", "1", "--sums", "900", "20"]


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(gpu, monkeypatch, *arguments):
    """The options as parsed by the script."""
    found = []
    monkeypatch.setattr(gpu, "one_library", found.append)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--library", "torch", *SMALL, *arguments])
    gpu.main()
    return found[0]


def test_every_part_of_the_benchmark_runs_on_a_cpu():
    sizes = ["--sizes", "40", "--gradient-sizes", "40", "--library-sizes", "40", "--mixed-sizes", "40"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *SMALL, *sizes], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for words in ("largest difference from NumPy", "log-likelihood and gradient, D = 40"):
        assert words in done.stdout
    table = done.stdout.split("by array library, D = 40")[1].splitlines()[1:4]
    assert [line.split()[0] for line in table] == ["torch", "CuPy", "JAX"]
    assert "TFLOP/s" in table[0]


def test_what_does_not_fit_is_skipped_with_the_numbers(gpu, monkeypatch, capsys):
    """Each library needs more than the 90 GB that are free for the first size, and less for the second."""
    monkeypatch.setattr(gpu, "memory_free", lambda device: 90.0)
    started = []
    monkeypatch.setattr(
        gpu, "in_a_process", lambda library, n, options: started.append(library) or "not measured"
    )
    gpu.other_libraries(100_000, options(gpu, monkeypatch))
    shown = capsys.readouterr().out
    assert started == []
    assert shown.count("skipped: it needs about") == 3
    gpu.other_libraries(40_000, options(gpu, monkeypatch))
    assert started == ["torch", "cupy", "jax"]


def test_running_out_of_memory_is_reported_in_one_line(gpu):
    def exhausted(*_):
        raise MemoryError("Out of memory allocating 7,200,000,000 bytes. And more")

    assert gpu.measure(exhausted, (None,), 1) == "Out of memory allocating 7,200,000,000 bytes"


def test_a_library_that_crashes_is_reported_in_one_line(gpu, monkeypatch):
    given = options(gpu, monkeypatch)
    given.device = "nowhere"
    assert gpu.in_a_process("torch", 10, given).startswith("exit code 1: ")
