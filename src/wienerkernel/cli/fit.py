"""The command ``fit``: from a table to a saved model and a summary of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from warnings import warn

from ..text import rounded
from .console import (
    Force,
    UsageError,
    argument,
    check_positive,
    listed,
    may_write,
    notes,
    numeric,
    option,
    say_written,
    scale_name,
    show,
    working,
)

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..kernels import Kernel
    from ..regressor import WienerKernelRegressor

__all__ = ["checked_noise", "fit", "parsed_kernel"]


def fit(
    data: Annotated[
        Path, argument("Table of samples, CSV with a header row or Parquet; - reads standard input.", "DATA")
    ],
    target: Annotated[str, option("Column with the observations.", "NAME", False)],
    inputs: Annotated[
        str | None, option("Input columns, comma-separated.", "NAMES", "all other columns with a name")
    ] = None,
    noise: Annotated[
        str | None,
        option(
            "Noise law: `auto`, which estimates the level, the shape and, for positive observations, a transform; known, as "
            "`gamma(0.25, scale=2)`; a family, as `norm` or `gamma`, whose scale and shape are estimated; or `residuals`, "
            "whose shape is taken from the data.",
            "LAW",
            "auto; norm with --tuning loo or none",
        ),
    ] = None,
    noise_level: Annotated[
        Literal["none", "input", "mean"],
        option("Whether the level of the noise is estimated as a function of the inputs or of the mean."),
    ] = "none",
    noise_scale: Annotated[
        str | None,
        option(
            "Column with a positive factor of the noise of each sample; not an input by default.",
            "COLUMN",
            "1 for all samples",
        ),
    ] = None,
    transform: Annotated[
        Literal["none", "log", "box-cox", "yeo-johnson"],
        option(
            "Transform of the observations that makes the noise additive. The exponents of `box-cox`, for positive "
            "observations, and of `yeo-johnson` are estimated. Predictions are on the original scale."
        ),
    ] = "none",
    kernel: Annotated[
        str | None,
        option(
            "Kernel formula, as `rbf`, `matern52*periodic` or `2.0*rbf(length_scale=0.5) + linear`. Names: rbf, "
            "matern12, matern32, matern52, rational_quadratic, periodic, linear, polynomial, constant. A name has one "
            "length scale per input, and a formula without numbers is multiplied by a variance.",
            "FORMULA",
            "rbf",
        ),
    ] = None,
    tuning: Annotated[
        Literal["likelihood", "loo", "none"],
        option(
            "How to estimate hyperparameters and unknown parts of the noise law: by likelihood, by the leave-one-out "
            "score under the exact noise law, or not at all."
        ),
    ] = "likelihood",
    trend: Annotated[
        Literal["none", "constant", "linear"], option("Part of the function that is not regularized.")
    ] = "constant",
    ridge: Annotated[
        float | None, option("Regularization parameter.", default="the noise variance", **numeric(float))
    ] = None,
    restarts: Annotated[
        int, option("Additional optimizer runs from random starting points.", **numeric(int, 0))
    ] = 0,
    seed: Annotated[int, option("Seed of the random starting points.", **numeric(int, 0))] = 0,
    output: Annotated[Path, option("Output file for the model.", "FILE", True, "--output", "-o")] = Path(
        "model.wk"
    ),
    force: Force = False,
) -> None:
    """Fit a model to a table of samples, save it, and print a summary."""
    if ridge is not None and ridge <= 0:
        raise UsageError(f"--ridge must be a positive number, got {ridge:g}")
    may_write(output, force)
    with notes():
        tuned = _none(tuning)
        noise = "auto" if noise is None and tuned == "likelihood" else noise
        law = checked_noise(noise, tuned)
        parsed_kernel(kernel)
        if tuned is None and (noise_level != "none" or transform in ("box-cox", "yeo-johnson")):
            raise UsageError(
                "--noise-level input and --transform box-cox or yeo-johnson need estimation: remove --tuning none"
            )
        names, X, y, scale = _read(data, target, inputs, noise_scale)
        if transform in ("log", "box-cox"):
            check_positive(y, target, f"--transform {transform}", data)
        with working("fitting"):
            from ..regressor import WienerKernelRegressor

            model = WienerKernelRegressor(
                parsed_kernel(kernel, None if tuned is None else len(names)),
                noise=law,
                ridge=ridge,
                trend=_none(trend),
                noise_level=_none(noise_level),
                transform=_none(transform),
                tuning=tuned,
                n_restarts=restarts,
                random_state=seed,
            ).fit(X, y, scale)
        _save(model, names, target, output, force)
        say_written(output)
        from ..io.tables import shortened

        show(f"{len(X)} samples of {target} against {shortened(names)}")
        _show_findings(model, X, y, scale)


def _none(choice: str) -> str | None:
    return None if choice == "none" else choice


def checked_noise(text: str | None, tuned: str | None) -> str | None:
    """The noise as given, after it has been parsed, so that an error in it is reported before the data are read."""
    if text is not None and text.strip() == "auto":
        if tuned != "likelihood":
            raise UsageError(f"--noise auto is estimated by likelihood: remove --tuning {tuned or 'none'}")
        return "auto"
    if text is not None:
        from ..noise.family import known_noise, noise_model

        try:
            noise_model(text) if tuned else known_noise(text)
        except TypeError as error:
            raise UsageError(f"noise {text!r}: {error}") from None
        except ValueError as error:
            raise UsageError(str(error)) from None
    return text


def parsed_kernel(text: str | None, n_inputs: int | None = None) -> Kernel | None:
    """The kernel; if it is tuned, with one length scale per input and a variance unless the formula has them."""
    if text is None:
        return None
    from ..kernels.parse import parse_kernel

    try:
        return parse_kernel(text, n_inputs)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _read(
    data: Path, target: str, inputs: str | None, noise_scale: str | None
) -> tuple[list[str], FloatArray, FloatArray, FloatArray | None]:
    """Names of the inputs, X (n, d), y (n,) and the noise scales (n,), if there is a column of them."""
    if noise_scale == target:
        raise UsageError(f"--noise-scale must be another column than the target, got {noise_scale!r}")
    with working(f"reading {data}"):
        from ..io.tables import open_table, read_numbers
        from ..validation import largest

        with open_table(data) as table:
            others = [name for name in table.names if name and name not in (target, noise_scale)]
            if inputs is None and "" in table.names:
                warn(
                    "the column without a name is not used as an input: give it a name to use it",
                    stacklevel=2,
                )
            names = others if inputs is None else listed(inputs)
            if target in names:
                raise UsageError(f"the target {target!r} is also among the inputs: remove it from --inputs")
            if len(set(names)) < len(names):
                raise UsageError(f"--inputs names a column twice: {inputs}")
            if not names:
                raise ValueError(f"{table.file}: there is no column besides {target!r} to use as input")
            columns = [*names, target] if noise_scale is None else [*names, target, noise_scale]
            try:
                values = read_numbers(table, columns, largest() ** 0.5)
            except ValueError as error:
                chosen = inputs is not None or len(names) == 1 or not {*columns} <= {*table.names}
                hint = "" if chosen else "; choose the input columns with --inputs"
                raise ValueError(f"{error}{hint}") from None
    if len(values) < 2:
        raise ValueError(f"{data}: at least two samples are needed to fit a model, got one")
    d = len(names)
    X, y = values[:, :d].copy(), values[:, d].copy()
    if noise_scale is None:
        return names, X, y, None
    check_positive(values[:, d + 1], noise_scale, "--noise-scale", data)
    return names, X, y, values[:, d + 1].copy()


def _save(model: WienerKernelRegressor, names: list[str], target: str, output: Path, force: bool) -> None:
    import numpy as np

    from ..io.store import save

    model.feature_names_in_ = np.array(names, dtype=object)
    model.target_names_in_ = np.array([target], dtype=object)
    save(model, output, overwrite=force)


def _show_findings(
    model: WienerKernelRegressor, X: FloatArray, y: FloatArray, scale: FloatArray | None
) -> None:
    """Show kernel, noise, its level, the transform, the uncertainty by cause, and leave-one-out scores."""
    import numpy as np

    from ..palette import CAUSES

    noise = model.noise_
    show("fitted model", style="bold")
    show(f"  kernel     {rounded(repr(model.kernel_))}")
    show(f"  noise      {rounded(repr(noise))}")
    mean = noise.mean() if abs(noise.mean()) > 1e-12 * noise.std() else 0.0
    show(f"             mean {mean:.4g}, standard deviation {noise.std():.4g}")
    for name, finding in _level_and_transform(model, X, y):
        show(f"  {name:<10} {finding}")

    parts = model.uncertainty(X, scale)
    where = "; on the transformed scale" * bool(scale_name(model))
    show(f"standard deviation of a new observation by cause, averaged over the data{where}", style="bold")
    remedies = {
        "noise": "reduced by more samples",
        "model": "reduced by samples at new inputs",
        "aleatoric": "not reduced by more samples",
    }
    for cause, remedy in remedies.items():
        variance = np.mean(getattr(parts, cause))
        share = variance / np.mean(parts.total)
        show(f"  {cause:<10} {np.sqrt(variance):<9.4g} {share:>4.0%}  {CAUSES[cause]}; {remedy}")

    report = model.score_report()
    show("leave-one-out scores", style="bold")
    show(f"  log score  {np.mean(report.log_score):.4f} per sample")
    show(f"  CRPS       {np.mean(report.crps):.4g}")
    explained = f"; R^2 {1 - report.rmse**2 / np.var(y):.3f}" if np.ptp(y) > 0 else ""
    show(f"  RMSE       {report.rmse:.4g}{explained}")
    for level in (0.5, 0.9):
        show(f"  coverage   {report.coverage(level):.1%} of samples in their {level:.0%} intervals")


def _level_and_transform(
    model: WienerKernelRegressor, X: FloatArray, y: FloatArray
) -> Iterator[tuple[str, str]]:
    """What was found about the shape of the noise, its level and the transform, if any of them was asked for."""
    from ..noise.level import LEVELS

    tuned, auto = model.tuning_result_, model.noise == "auto"
    if auto and tuned.shape_gain:
        yield "", f"leave-one-out log score {tuned.shape_gain:+.1f} compared with normal noise"
    elif auto:
        yield "", "normal: no other shape has a clearly better leave-one-out log score"
    if tuned is not None and (auto or model.noise_level in LEVELS):
        evidence = f"log evidence {tuned.level_evidence or 0:+.1f}"
        if tuned.level is not None:
            names = model.feature_names_in_
            by = "the mean" if model.noise_level == "mean" else names[0] if len(names) == 1 else "the inputs"
            level = model.predict_noise_scale(X)
            extent = f"between {level.min():.3g} and {level.max():.3g} times the noise"
            yield "level", f"varies with {by} {extent} ({evidence})"
        elif tuned.level_evidence is None:
            yield "level", "constant: too few samples to estimate a varying one"
        else:
            yield "level", f"constant: a varying one has lower evidence ({evidence})"
    if transform := scale_name(model):
        gain = None if tuned is None else tuned.transform_gain
        yield (
            "transform",
            transform + ("" if gain is None else f" (log posterior {gain:+.1f} compared with none)"),
        )
    elif auto and (y <= 0).any():
        yield "transform", "none: only positive observations are transformed"
