"""The command ``fit``: from a table to a saved model and a summary of it."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from .console import note, notes, say_written, searching, show_json, working
from .options import Force, Missing, Scheduler, UsageError, argument, check_figure, may_write, numeric, option

if TYPE_CHECKING:
    from ..kernels import Kernel

__all__ = ["checked_noise", "fit", "parsed_kernel"]


def fit(
    data: Annotated[
        Path,
        argument(
            "Table of samples, CSV with a header row or Parquet, or a pattern such as 'data/*.parquet', whose files are read "
            "in parts; - reads standard input.",
            "DATA",
        ),
    ],
    target: Annotated[
        list[str],
        option(
            "Column with the observations; several are comma-separated or have a -t each. Names with commas are put in "
            "double quotes.",
            "NAME",
            False,
            "--target",
            "-t",
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        option(
            "Input columns, comma-separated or in several --inputs. Texts become one input for each value, dates elapsed "
            "time.",
            "NAMES",
            "all other columns with a name",
        ),
    ] = None,
    missing: Missing = "refuse",
    group: Annotated[
        str | None,
        option(
            "Column that is equal for replicates, whose inputs are averaged; for inputs that were measured or rounded. Not "
            "an input by default.",
            "COLUMN",
            "equal inputs are replicates",
        ),
    ] = None,
    noise: Annotated[
        str | None,
        option(
            "Noise law: `auto`, which estimates the level, the shape and, for positive observations, a transform; a known law, "
            "such as `gamma(0.25, scale=2)`; a family, such as `norm` or `gamma`, whose scale and shape are estimated; or "
            "`residuals`, whose shape is taken from the data.",
            "LAW",
            "auto; norm with --tuning loo or none, and for approximations",
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
            "Kernel formula, such as `rbf`, `matern52*periodic` or `2.0*rbf(length_scale=0.5) + linear`. Names: rbf, "
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
    approximation: Annotated[
        Literal["auto", "none", "neighbors", "features"],
        option(
            "How to solve for large data: by nearest neighbors, or by features of the kernel with one pass over the data; "
            "`auto` is exact up to 25,000 distinct inputs and chooses beyond."
        ),
    ] = "auto",
    scheduler: Scheduler = None,
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
    plot: Annotated[
        Path | None, option("Figure of the fit and its diagnostics, PNG, PDF or SVG.", "FILE", "none")
    ] = None,
    verbose: Annotated[
        bool, option("Show every evaluation of the objective.", "", True, "--verbose")
    ] = False,
    as_json: Annotated[bool, option("Print the summary as JSON.", "", True, "--json")] = False,
    force: Force = False,
) -> None:
    """Fit a model to a table of samples, save it, and print a summary."""
    if ridge is not None and ridge <= 0:
        raise UsageError(f"--ridge must be a positive number, got {ridge:g}")
    may_write(output, force)
    if plot is not None:
        check_figure(plot, force)
    with notes(), ExitStack() as stack:
        tuned = _none(tuning)
        law = checked_noise("auto" if noise is None and tuned == "likelihood" else noise, tuned)
        parsed_kernel(kernel)
        if tuned is None and (noise_level != "none" or transform in ("box-cox", "yeo-johnson")):
            raise UsageError(
                "--noise-level input and --transform box-cox or yeo-johnson need estimation: remove --tuning none"
            )
        import numpy as np

        from .. import fitting
        from ..io.store import save
        from ..io.streams import workers
        from ..regressor import WienerKernelRegressor
        from ..scale import is_small
        from ..validation import check_data
        from .read import check_positive, read_samples
        from .streaming import fit_files, is_streamed, prepared, seen_by_workers
        from .summary import show_summary, summarize

        data = seen_by_workers(data, scheduler)
        stack.enter_context(workers(scheduler))
        files = None
        if is_streamed(data, scheduler):
            files, targets = prepared(data, target, inputs, noise_scale, group, missing == "drop")
            names = files.features
        else:
            samples = read_samples(data, target, inputs, noise_scale, group, missing == "drop")
            if transform in ("log", "box-cox"):
                for name, y in zip(samples.targets, np.atleast_2d(samples.y.T), strict=True):
                    check_positive(y, name, f"--transform {transform}", data)
            names = samples.features
        with searching("fitting", verbose) if files is None or verbose else nullcontext():
            small = approximation == "auto" and files is None and is_small(samples.X)
            exact = small or approximation == "none"
            if noise is None and law == "auto" and (files is not None or not exact):
                law = "norm"

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
                approximation=None if exact else approximation,
            )
            if files is not None:
                samples = fit_files(model, files, targets, noise_scale)
            else:
                X, outputs = check_data(model, samples.X, samples.y, reset=True)
                model.feature_names_in_ = np.array(names, dtype=object)
                fitting.fit(model, X, outputs, samples.scale, None)
        model.target_names_in_ = np.array(samples.targets, dtype=object)
        if any(column.kind != "number" for column in samples.columns):
            model.columns_ = samples.columns
        save(model, output, overwrite=force)
        say_written(output)
        collapsed = files is not None and not hasattr(model, "approximation_")
        with working("scoring"):
            summary = summarize(model, samples, collapsed)
        if plot is not None and collapsed:
            note("no figure is drawn: only means and variances at each input are kept, not the rows")
        elif plot is not None:
            with working("drawing"):
                from .figure import draw_fit

                draw_fit(model, samples, summary, plot, force)
        if as_json:
            show_json(summary)
        else:
            show_summary(summary)


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
