"""A fitted model as one file, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ..._typing import FloatArray
from ...kernels import Kernel
from ...losses import NonlinearPosterior
from ...posterior import Posterior, SeparateOutputs
from ...scale import ApproximatePosterior
from ...transform import Transform
from ...tuning import METHODS, TuningResult
from ...validation import SMALLEST
from ..files import atomic_write
from .approximate import approximate_from, approximate_node, approximation_from, approximation_node
from .archive import Archive, FormatError, write_archive
from .columns import columns_from, columns_node
from .input_noise import input_noise_from, input_noise_node
from .level import level_from, level_node
from .nodes import Node, Reader, Writer, as_plain, choice, entries, integer, items, number
from .noise import CLOSE, moments_at_hand, noise_from, noise_node
from .nonlinear import nonlinear_from, nonlinear_node
from .objects import kernel_from, kernel_node, transform_from, transform_node
from .parameters import parameters_from, parameters_node
from .smoother import check_finite, probes, smoother_from, smoother_node

if TYPE_CHECKING:
    from ...dynamics import Dynamics
    from ...regressor import WienerKernelRegressor

__all__ = ["load", "load_any", "load_system", "save"]

FORMAT, VERSION = "wienerkernel model", 4
LONGEST_TEXT, LONGEST_MESSAGE = 2**22, 600
NAMES = ("feature_names", "target_names")


def save(
    model: WienerKernelRegressor | Dynamics, path: str | os.PathLike[str], *, overwrite: bool = True
) -> None:
    """Write a fitted model or a system to a file, atomically.

    Parameters
    ----------
    model : WienerKernelRegressor or Dynamics
        Fitted. Arrays of other libraries are saved as NumPy arrays. A ``random_state`` that is a generator is not
        kept: the model is fitted already. Column names are kept if there are attributes ``feature_names_in_`` and
        ``target_names_in_``, and how columns of a table became inputs if there is an attribute ``columns_``.
    path : path-like
        Conventionally ending in ``.wk``.
    overwrite : bool, default=True
        Whether a file of that name may be replaced.

    Raises
    ------
    TypeError
        If the kernel, the noise law, the noise level or the transform is code, which a file of numbers cannot hold.
    """
    from ...dynamics import Dynamics

    writer = Writer()
    try:
        if isinstance(model, Dynamics):
            from .system import system_node

            content: dict[str, Node] = {"system": system_node(model, writer, _model_node)}
        else:
            check_is_fitted(model)
            content = _model_node(model, writer)
        tree = {"format": FORMAT, "version": VERSION, "library": __version__, **content}
        text = json.dumps(tree, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("the model cannot be saved: its kernel or noise is nested too deeply") from None
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"the model cannot be saved: names and parameters take more than {LONGEST_TEXT} bytes"
        )
    with atomic_write(path, overwrite=overwrite) as file:
        write_archive(file, text, writer.arrays)


def load(path: str | os.PathLike[str]) -> WienerKernelRegressor:
    """Read a model that `save` has written. Nothing is refitted, and no code is loaded from the file.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    WienerKernelRegressor
        Its predictions equal those of the saved model bit for bit on the same machine.

    Raises
    ------
    FormatError
        A ValueError: the file is not a saved model, is damaged, or was written by another version of the format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     load(file.name)
    Traceback (most recent call last):
    wienerkernel.io.store.archive.FormatError: ...: the file is not a saved model, or it is truncated
    """
    from ...regressor import WienerKernelRegressor

    found = load_any(path)
    if not isinstance(found, WienerKernelRegressor):
        raise FormatError(
            f"{os.fspath(path)}: this is a dynamic system: read it with Dynamics.load, or report it"
        )
    return found


def load_system(path: str | os.PathLike[str]) -> Dynamics:
    """Read a system that `save` has written, as `load` does models."""
    from ...dynamics import Dynamics

    found = load_any(path)
    if not isinstance(found, Dynamics):
        raise FormatError(f"{os.fspath(path)}: this is a model, not a dynamic system; read it with load")
    return found


def load_any(path: str | os.PathLike[str]) -> WienerKernelRegressor | Dynamics:
    """Read what `save` has written, a model or a system."""
    try:
        with Archive(path) as archive, np.errstate(all="ignore"):
            tree, reader = _parsed(archive.text(LONGEST_TEXT)), Reader(archive)
            model: Any
            if "system" in tree:
                from .system import system_from

                model = system_from(entries(tree, "system")[0], reader, _model_from)
            else:
                model = _model_from(tree, reader)
            if archive.unread:
                raise FormatError(f"{archive.unread[0]} belongs to no part of the model")
            return model  # type: ignore[no-any-return]
    except RecursionError:
        raise FormatError(f"{os.fspath(path)}: model.json is nested too deeply") from None
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        # What constructors raise for invalid arguments is an error in the file here.
        raise FormatError(f"{os.fspath(path)}: {str(error)[:LONGEST_MESSAGE]}") from error


def _parsed(text: bytes) -> dict[str, Node]:
    """The tree in ``model.json``, after a check of its format and version."""

    def refuse(word: str) -> None:
        raise FormatError(f"model.json: {word} is not a number")

    tree = json.loads(text.decode(), parse_constant=refuse)
    if not isinstance(tree, dict) or tree.pop("format", None) != FORMAT:
        raise FormatError(f"the file is not a {FORMAT}")
    version, library = tree.pop("version", None), str(tree.pop("library", None))[:20]
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"model.json: {str(version)[:80]!r} is not a version of the format")
    if version != VERSION:
        age, remedy = (
            ("newer", "upgrade to read it") if version > VERSION else ("older", "fit the model again")
        )
        raise FormatError(
            f"written by a{'n' * (age == 'older')} {age} version of wienerkernel ({library}, this is {__version__}): {remedy}"
        )
    return tree


def _model_node(model: WienerKernelRegressor, writer: Writer) -> dict[str, Node]:
    """Entries of the model; those of further outputs that have a model each are in a list."""
    names = {key: getattr(model, f"{key}_in_", None) for key in NAMES}
    posterior, ridge, tuned = model.posterior_, model.ridge_, model.tuning_result_
    separate = isinstance(posterior, SeparateOutputs)
    found = [(posterior, ridge, tuned)]
    if separate:
        found = list(zip(posterior.outputs, ridge, tuned or [None] * len(ridge), strict=True))
    tree = {"parameters": parameters_node(model, writer), **_posterior_node(*found[0], writer)}
    if hasattr(model, "approximation_"):
        tree["approximation"] = approximation_node(model.approximation_, writer, "fitted_actions")
    if hasattr(model, "columns_"):
        tree["columns"] = columns_node(model.columns_)
    further, prefix = [], writer.prefix
    for k, part in enumerate(found[1:], start=1):
        writer.prefix = f"{prefix}output{k}."
        further.append(_posterior_node(*part, writer))
    return {
        **tree,
        **({"further": further} if separate else {}),
        **{key: None if found is None else [str(name) for name in found] for key, found in names.items()},
    }


def _posterior_node(
    posterior: Any, ridge: float, tuned: TuningResult | None, writer: Writer
) -> dict[str, Node]:
    level, transform = posterior.level, posterior.transform
    common = {
        "kernel": kernel_node(_kernel_of(posterior)),
        "noise": noise_node(posterior.noise, writer, "noise"),
        "ridge": float(ridge),
        "tuned": _tuned_node(tuned),
        "level": None if level is None else level_node(level, writer, "level"),
        "transform": None if transform is None else transform_node(transform),
    }
    if isinstance(posterior, NonlinearPosterior):
        return {**common, "nonlinear": nonlinear_node(posterior, writer)}
    noisy = posterior.input_noise
    return {
        **common,
        "smoother": (
            approximate_node(posterior.smoother, writer)
            if isinstance(posterior, ApproximatePosterior)
            else smoother_node(posterior.smoother, writer)
        ),
        "single_output": posterior.single_output,
        "ridge_is_noise_variance": posterior.ridge_is_noise_variance,
        "output_scale": posterior.output_scale.tolist(),
        "input_noise": None if noisy is None else input_noise_node(noisy, writer),
    }


ENTRIES = ("kernel", "noise", "ridge", "tuned", "level", "transform")
OF_POSTERIOR = ("smoother", "single_output", "ridge_is_noise_variance", "output_scale", "input_noise")


def _kernel_of(posterior: Any) -> Kernel:
    nonlinear = isinstance(posterior, NonlinearPosterior)
    kernel: Kernel = (posterior.coordinates if nonlinear else posterior.smoother).kernel
    return kernel


def _shape_of(posterior: Any) -> tuple[int, int, int]:
    """Numbers of samples, inputs and outputs."""
    if isinstance(posterior, NonlinearPosterior):
        observed: Any = posterior.observed
        return len(observed.y), observed.places.shape[1], 1
    smoother = posterior.smoother
    return len(smoother.targets), smoother.samples.places.shape[1], smoother.targets.shape[1]


def _model_from(tree: dict[str, Node], reader: Reader) -> WienerKernelRegressor:
    from ...regressor import WienerKernelRegressor

    names, parameters = [tree.pop(key, None) for key in NAMES], tree.pop("parameters", None)
    separate, further = "further" in tree, tree.pop("further", [])
    approximation = approximation_from(tree.pop("approximation", None), reader)
    columns = tree.pop("columns", None)
    if not isinstance(further, list):
        raise FormatError("model.json: further must be a list of models")
    found = [_posterior_from(node, reader) for node in (tree, *further)]
    posteriors, ridges, tuned = zip(*found, strict=True)
    first = posteriors[0]
    _, n_features, n_outputs = _shape_of(first)
    if separate:
        n_outputs = len(posteriors)
        kinds = {(type(p), _shape_of(p)) for p in posteriors}
        if len(kinds) > 1 or not all(p.single_output for p in posteriors):
            raise FormatError("separate outputs must be single, with the same samples")
    model = WienerKernelRegressor(**parameters_from(parameters, first.noise, first.level, n_features, reader))
    model.n_features_in_ = n_features
    if approximation is not None:
        model.approximation_ = approximation
    if columns is not None:
        model.columns_ = columns_from(columns, n_features)
    for key, given, n in zip(NAMES, names, (n_features, n_outputs), strict=True):
        if given is not None:
            setattr(model, f"{key}_in_", _names_from(key, given, n))
    if not separate:
        model.kernel_, model.noise_, model.posterior_ = _kernel_of(first), first.noise, first
        model.ridge_, model.tuning_result_ = ridges[0], tuned[0]
        return model
    model.posterior_ = SeparateOutputs(posteriors)
    model.kernel_, model.noise_ = tuple(map(_kernel_of, posteriors)), model.posterior_.noise
    model.ridge_, model.tuning_result_ = np.array(ridges), tuned if any(tuned) else None
    return model


def _posterior_from(node: Node, reader: Reader) -> tuple[Any, float, TuningResult | None]:
    """The posterior, the ridge and the result of the tuning that a node describes."""
    nonlinear = isinstance(node, dict) and "nonlinear" in node
    kernel, noise, ridge, tuned, level, transform, *rest = entries(
        node, *ENTRIES, *(("nonlinear",) if nonlinear else OF_POSTERIOR)
    )
    ridge, law = number(ridge, SMALLEST**2, SMALLEST**-2), noise_from(noise, reader)
    transform = None if transform is None else transform_from(transform)
    if nonlinear:
        found = nonlinear_from(rest[0], kernel_from(kernel), law, reader)
        observed: Any = found.observed
        found.level = None if level is None else level_from(level, observed.places.shape[1], reader)
        found.transform = transform
        mean, parts = found.mean_and_uncertainty(probes(observed.places))
        check_finite(mean, parts.total)
        if transform is not None:
            _check_range(transform, np.append(observed.y, mean[:-3]))  # without those far from the data
        return found, ridge, _tuned_from(tuned, found, ridge)
    smoother, single, matched, scale, noisy = rest
    matched, moments = choice(matched, True, False), moments_at_hand(law)
    if matched and moments is not None and not abs(ridge - moments[1]) <= CLOSE * ridge:
        raise FormatError(f"the ridge, {ridge:g}, should be the variance of the noise, {moments[1]:g}")
    approximate = isinstance(smoother, dict) and "kind" in smoother
    smoothed: Any = (approximate_from if approximate else smoother_from)(
        smoother, kernel_from(kernel), reader
    )
    n_features, n_outputs = smoothed.samples.places.shape[1], smoothed.targets.shape[1]
    if choice(single, True, False) and n_outputs != 1:
        raise FormatError("single_output is true, but there are several outputs")
    if not single and (level is not None or transform is not None):
        raise FormatError("a noise level and a transform need a single output")
    if noisy is not None:
        if n_outputs > 1:
            raise FormatError("noise on the inputs needs a single output")
        noisy = input_noise_from(noisy, len(smoothed.targets), n_features, reader)
    level = None if level is None else level_from(level, n_features, reader)
    scales = _scale_from(scale, n_outputs)
    conditioned = ApproximatePosterior if approximate else Posterior
    posterior = conditioned(smoothed, law, single, matched, scales, level, transform, noisy)
    if transform is not None and moments is not None:
        _check_range(transform, posterior.observed())
    return posterior, ridge, _tuned_from(tuned, posterior, ridge)


def _check_range(transform: Transform, samples: FloatArray) -> None:
    """The samples are finite on the scale of y."""
    if not np.all(np.isfinite(transform.inverse(samples))):
        raise FormatError("targets are outside the range of the transform")


def _scale_from(node: Node, n_outputs: int) -> FloatArray:
    """Scales of the outputs; a single output has the scale 1."""
    right = isinstance(node, list) and len(node) == n_outputs and (n_outputs > 1 or node == [1.0])
    if not right or not all(isinstance(value, float) and 1e-150 < value < 1e150 for value in node):
        raise FormatError(f"output_scale must be {n_outputs} positive numbers, 1 for a single output")
    return np.array(node)


def _names_from(key: str, node: Node, n: int) -> np.ndarray[Any, np.dtype[Any]]:
    if not isinstance(node, list) or len(node) != n or not all(isinstance(name, str) for name in node):
        raise FormatError(f"{key} must be {n} strings, one per column")
    return np.array(node, dtype=object)


TUNED: dict[str, Callable[[Node], Any]] = {
    "method": lambda node: choice(node, *METHODS, "neighbors"),
    "value": lambda node: number(node, -np.inf, np.inf),
    "parameters": lambda node: {name: number(found, -np.inf, np.inf) for name, found in items(node)},
    "n_evaluations": lambda node: integer(node, 0, 2**63),
    **dict.fromkeys(
        ("level_evidence", "transform_gain", "shape_gain"),
        lambda node: None if node is None else number(node, -np.inf, np.inf),
    ),
}
"""What tuning found, except what the fitted model holds anyway, and how it is checked."""


def _tuned_node(tuned: TuningResult | None) -> Node:
    if tuned is None:
        return None
    node = {key: as_plain(getattr(tuned, key), key) for key in TUNED if key != "parameters"}
    return node | {"parameters": {name: as_plain(value, name) for name, value in tuned.parameters.items()}}


def _tuned_from(node: Node, posterior: Any, ridge: float) -> TuningResult | None:
    if node is None:
        return None
    found = zip(TUNED.items(), entries(node, *TUNED), strict=True)
    return TuningResult(
        kernel=_kernel_of(posterior),
        noise=posterior.noise,
        ridge=ridge,
        output_scale=posterior.output_scale,
        level=posterior.level,
        transform=posterior.transform,
        **{key: check(value) for (key, check), value in found},
    )
