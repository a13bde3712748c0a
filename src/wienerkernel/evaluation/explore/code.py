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
    kernel: Any = None,
    noise: Any = None,
    noise_scale: FloatArray | None = None,
    tuned_on: tuple[FloatArray, FloatArray] | None = None,
) -> str:
    """Python that fits a model like this one to X and y.

    ``kernel`` and ``noise`` replace those of the model. Where a law, a level or a transform has no short form, the code
    first repeats the fit that it comes from, to the data ``tuned_on``.
    """
    kernel, noise = model.kernel_ if kernel is None else kernel, model.noise_ if noise is None else noise
    posterior = model.posterior_
    before = (X, y) if tuned_on is None else tuned_on
    own = (
        model.noise_ is noise and model.kernel_ == kernel and before[0] is X and np.array_equal(before[1], y)
    )
    scaled = noise_scale is not None and bool(np.any(noise_scale != 1.0))
    more = ", noise_scale=noise_scale" * scaled
    lines = [f"X = {_array(X)}", f"y = {_array(y)}"]
    lines += [f"noise_scale = {_array(noise_scale)}"] if scaled and noise_scale is not None else []
    short = _short(noise)
    if short and posterior.level is None and posterior.transform is None:
        options = [repr(kernel), f"noise={short}"]
    elif own:
        lines.append(f"model = {model!r}.fit(X, y{more})")
        return _with_imports(lines)
    else:
        lines.append("# the model before samples or parameters were changed")
        if before[0] is X and np.array_equal(before[1], y):
            lines.append(f"own = {model!r}.fit(X, y{more})")
        else:
            lines.append(f"own = {model!r}.fit({_array(before[0])}, {_array(before[1])})")
        options = [repr(kernel), f"noise={short or 'own.noise_'}"]
        if posterior.level is not None:
            options.append("noise_level=own.posterior_.level")
        if posterior.transform is not None:
            lines.append("scale = own.posterior_.transform")
            options.append("transform=(scale, scale.inverse, lambda y: np.exp(scale.log_derivative(y)))")
    if model.ridge is not None:
        options.append(f"ridge={model.ridge!r}")
    options += [f"trend={posterior.smoother.trend.kind!r}", "tuning=None"]
    lines.append(f"model = WienerKernelRegressor({', '.join(options)}).fit(X, y{more})")
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
