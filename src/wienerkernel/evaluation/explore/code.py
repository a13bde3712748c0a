"""A model as Python code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...noise import as_noise

__all__ = ["model_code"]


def model_code(
    model: Any,
    X: FloatArray,
    y: FloatArray,
    kernel: Any,
    noise: Any,
    noise_scale: FloatArray,
    tuned_on: tuple[FloatArray, FloatArray],
) -> str:
    """Python that fits a model like this one, with another kernel and noise, to X and y.

    Where a law, a level or a transform has no short form, the code first repeats the fit that it comes from, to the data
    ``tuned_on``.
    """
    posterior = model.posterior_
    same = tuned_on[0] is X and np.array_equal(tuned_on[1], y)
    lines, given = [f"X = {_array(X)}", f"y = {_array(y)}"], "X, y"
    if np.any(noise_scale != 1.0):
        lines.append(f"noise_scale = {_array(noise_scale)}")
        given += ", noise_scale=noise_scale"
    short = _short(noise)
    if short and posterior.level is None and posterior.transform is None:
        options = [repr(kernel), f"noise={short}"]
    elif same and model.noise_ is noise and model.kernel_ == kernel:
        lines.append(f"model = {model!r}.fit({given})")
        return _with_imports(lines)
    else:
        before = given if same else f"{_array(tuned_on[0])}, {_array(tuned_on[1])}"
        lines += ["# the model before samples or parameters were changed", f"own = {model!r}.fit({before})"]
        options = [repr(kernel), f"noise={short or 'own.noise_'}"]
        if posterior.level is not None:
            options.append("noise_level=own.posterior_.level")
        if posterior.transform is not None:
            lines.append("scale = own.posterior_.transform")
            options.append("transform=(scale, scale.inverse, lambda y: np.exp(scale.log_derivative(y)))")
    if model.ridge is not None:
        options.append(f"ridge={model.ridge!r}")
    options += [f"trend={posterior.smoother.trend.kind!r}", "tuning=None"]
    lines.append(f"model = WienerKernelRegressor({', '.join(options)}).fit({given})")
    return _with_imports(lines)


def _short(noise: Any) -> str:
    """The string that `as_noise` makes this law of; empty if there is none."""
    try:
        return repr(repr(noise)) if as_noise(repr(noise)) == noise else ""
    except (TypeError, ValueError):
        return ""


def _array(values: FloatArray) -> str:
    # all digits: a fit can end elsewhere for data that differ in the twelfth
    text = np.array2string(np.asarray(values), separator=", ", threshold=values.size + 1, floatmode="unique")
    return f"np.array({text})"


def _with_imports(lines: list[str]) -> str:
    """Lines of code that print predictions, after the imports of the names that they use."""
    lines.append("print(model.predict_interval(X[:5], 0.9))")
    text = "\n".join(lines)
    import wienerkernel

    names = sorted(name for name in wienerkernel.__all__ if re.search(rf"\b{name}\(", text))
    return f"import numpy as np\n\nfrom wienerkernel import {', '.join(names)}\n\n{text}\n"
