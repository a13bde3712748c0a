"""A fitted model as one file, and back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ..._typing import FloatArray
from ...posterior import Posterior
from ...tuning import METHODS, TuningResult
from ...validation import SMALLEST
from ..files import written_whole
from .archive import Archive, FormatError, write_archive
from .kernels import kernel_from, kernel_node
from .nodes import Node, Reader, Writer, as_plain, choice, entries, integer, number
from .noise import CLOSE, moments_at_hand, noise_from, noise_node
from .parameters import parameters_from, parameters_node
from .smoother import smoother_from, smoother_node

if TYPE_CHECKING:
    from ...regressor import WienerKernelRegressor

__all__ = ["load", "save"]

FORMAT, VERSION = "wienerkernel model", 2
LONGEST_TEXT, LONGEST_MESSAGE = 2**22, 600
NAMES = ("feature_names", "target_names")


def save(model: WienerKernelRegressor, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : WienerKernelRegressor
        Fitted. Arrays of another library than NumPy are saved as NumPy's. A ``random_state`` that is a generator is
        not kept: the model is fitted already. Names of the columns are, if there are attributes ``feature_names_in_``
        and ``target_names_in_``.
    path : path-like
        By custom with the suffix ``.wk``.
    overwrite : bool, default=True
        Whether a file of that name may be replaced.

    Raises
    ------
    TypeError
        For a kernel or a noise law that is code, which a file of numbers cannot hold.
    """
    check_is_fitted(model)
    writer = Writer()
    try:
        tree = {"format": FORMAT, "version": VERSION, "library": __version__, **_model_node(model, writer)}
        text = json.dumps(tree, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("the model cannot be saved: its kernel or noise is nested too deeply") from None
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"the model cannot be saved: names and parameters take more than {LONGEST_TEXT} bytes"
        )
    with written_whole(path, overwrite=overwrite) as file:
        write_archive(file, text, writer.arrays)


def load(path: str | os.PathLike[str]) -> WienerKernelRegressor:
    """Read a model that `save` has written. Nothing is fitted again, and no code comes from the file.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    WienerKernelRegressor
        It predicts bit for bit what the saved one did.

    Raises
    ------
    FormatError
        A ValueError: the file is not a saved model, is damaged, or was made by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     load(file.name)
    Traceback (most recent call last):
    wienerkernel.io.store.archive.FormatError: ...: the file is not a saved model, or it is cut off
    """
    try:
        with Archive(path) as archive, np.errstate(all="ignore"):
            model = _model_from(_parsed(archive.text(LONGEST_TEXT)), Reader(archive))
            if archive.unread:
                raise FormatError(f"{archive.unread[0]} belongs to no part of the model")
            return model
    except RecursionError:
        raise FormatError(f"{os.fspath(path)}: model.json is nested too deeply") from None
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        # Constructors raise what they raise for a user's mistake; here the mistake is the file's.
        raise FormatError(f"{os.fspath(path)}: {str(error)[:LONGEST_MESSAGE]}") from error


def _parsed(text: bytes) -> dict[str, Node]:
    """The tree in ``model.json``, after its format and version have been looked at."""

    def refuse(word: str) -> None:
        raise FormatError(f"model.json: {word} is not a number")

    tree = json.loads(text.decode(), parse_constant=refuse)
    if not isinstance(tree, dict) or tree.pop("format", None) != FORMAT:
        raise FormatError(f"the file is not a {FORMAT}")
    version, library = tree.pop("version", None), str(tree.pop("library", None))[:20]
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"model.json: {str(version)[:80]!r} is not a version of the format")
    if version > VERSION:
        raise FormatError(
            f"made by a newer version of wienerkernel ({library}, this is {__version__}): upgrade to read it"
        )
    if version == 1:  # all outputs had one scale
        tree["output_scale"] = None
    return tree


def _model_node(model: WienerKernelRegressor, writer: Writer) -> dict[str, Node]:
    posterior: Posterior = model.posterior_
    names = {key: getattr(model, f"{key}_in_", None) for key in NAMES}
    return {
        "parameters": parameters_node(model, writer),
        "kernel": kernel_node(posterior.smoother.kernel),
        "noise": noise_node(posterior.noise, writer, "noise"),
        "ridge": float(model.ridge_),
        "tuned": _tuned_node(model.tuned_),
        **{key: None if found is None else [str(name) for name in found] for key, found in names.items()},
        "output_scale": posterior.output_scale.tolist(),
        "single_output": posterior.single_output,
        "ridge_is_noise_variance": posterior.ridge_is_noise_variance,
        "smoother": smoother_node(posterior.smoother, writer),
    }


def _model_from(tree: dict[str, Node], reader: Reader) -> WienerKernelRegressor:
    from ...regressor import WienerKernelRegressor

    if "output_scale" not in tree:
        raise FormatError("model.json: the entry output_scale is missing")
    scale = tree.pop("output_scale")
    parameters, kernel, noise, ridge, tuned, single_output, ridge_is_noise_variance, smoother, *names = (
        entries(
            tree,
            "parameters",
            "kernel",
            "noise",
            "ridge",
            "tuned",
            "single_output",
            "ridge_is_noise_variance",
            "smoother",
            *NAMES,
        )
    )
    ridge, ridge_is_noise_variance = (
        number(ridge, SMALLEST**2, SMALLEST**-2),
        choice(ridge_is_noise_variance, True, False),
    )
    law = noise_from(noise, reader)
    moments = moments_at_hand(law)
    if ridge_is_noise_variance and moments is not None and not abs(ridge - moments[1]) <= CLOSE * ridge:
        raise FormatError(
            f"model.json: the ridge, {ridge:g}, should be the variance of the noise, {moments[1]:g}"
        )
    smoothed = smoother_from(smoother, kernel_from(kernel), reader)
    fitted = Posterior(smoothed, law, choice(single_output, True, False), ridge_is_noise_variance)
    if single_output and fitted.smoother.targets.shape[1] != 1:
        raise FormatError("model.json: there are several outputs, but y is said to be a vector")
    fitted = replace(fitted, output_scale=_scale_from(scale, fitted.smoother.targets.shape[1]))
    model = WienerKernelRegressor(**parameters_from(parameters, law, reader))
    model.n_features_in_ = fitted.smoother.places.shape[1]
    columns = model.n_features_in_, fitted.smoother.targets.shape[1]
    for key, found, n in zip(NAMES, names, columns, strict=True):
        if found is not None:
            setattr(model, f"{key}_in_", _names_from(key, found, n))
    model.kernel_, model.noise_, model.ridge_ = fitted.smoother.kernel, law, ridge
    model.tuned_ = _tuned_from(tuned, model)
    model.posterior_ = fitted
    if model.tuned_ is not None:
        model.tuned_ = replace(model.tuned_, output_scale=fitted.output_scale)
    return model


def _scale_from(node: Node, n_outputs: int) -> FloatArray:
    """Scales of the outputs; files of version 1 have none, and a single output has the scale 1."""
    numbers = [1.0] * n_outputs if node is None else node
    right = isinstance(numbers, list) and len(numbers) == n_outputs
    if not right or not all(isinstance(value, float) and 1e-150 < value < 1e150 for value in numbers):
        raise FormatError(f"model.json: output_scale must be {n_outputs} positive numbers")
    if n_outputs == 1 and numbers != [1.0]:
        raise FormatError("model.json: a single output has the scale 1")
    return np.array(numbers)


def _names_from(key: str, node: Node, n: int) -> np.ndarray[Any, np.dtype[Any]]:
    if not isinstance(node, list) or len(node) != n or not all(isinstance(name, str) for name in node):
        raise FormatError(f"model.json: {key} must be {n} texts, one per column")
    return np.array(node, dtype=object)


def _tuned_node(tuned: TuningResult | None) -> Node:
    """What tuning found, less what the fitted model says itself."""
    if tuned is None:
        return None
    return {
        "method": tuned.method,
        "value": as_plain(tuned.value, "value of the objective"),
        "parameters": {name: as_plain(value, name) for name, value in tuned.parameters.items()},
        "n_evaluations": int(tuned.n_evaluations),
    }


def _tuned_from(node: Node, model: WienerKernelRegressor) -> TuningResult | None:
    if node is None:
        return None
    method, value, parameters, n_evaluations = entries(node, "method", "value", "parameters", "n_evaluations")
    if not isinstance(parameters, dict):
        raise FormatError("model.json: what tuning found must have names")
    return TuningResult(
        model.kernel_,
        model.noise_,
        model.ridge_,
        choice(method, *METHODS),
        number(value, -np.inf, np.inf),
        {name: number(found, -np.inf, np.inf) for name, found in parameters.items()},
        integer(n_evaluations, 0, 2**63),
    )
