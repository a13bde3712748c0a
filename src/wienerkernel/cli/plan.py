"""The command ``plan``: how many more samples are needed, and where."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from .console import note, notes, show
from .model import load_model, model_columns, read_all, scale_name
from .options import Model, UsageError, listed, numeric, option
from .read import spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import FloatArray
    from ..io.columns import Column
    from ..regressor import WienerKernelRegressor

__all__ = ["plan"]

AT = "NAME=VALUE"
CANDIDATES = 201


def plan(
    model: Model,
    at: Annotated[
        list[str] | None,
        option("Input of interest: a value for every input, comma-separated or in several --at.", AT, False),
    ] = None,
    std: Annotated[
        float | None, option("Target standard deviation at that input.", default=False, **numeric(float))
    ] = None,
    of: Annotated[
        Literal["function", "estimate"],
        option(
            "What --std refers to: the function (noise in the data and unexplored inputs) or the estimate (noise in the "
            "data only)."
        ),
    ] = "function",
    goal: Annotated[
        Literal["average", "worst"],
        option("Variance over the range of the data that the proposed samples reduce."),
    ] = "average",
    candidates: Annotated[
        Path | None,
        option(
            "Table of inputs to choose from, CSV or Parquet.", "FILE", "inputs within the range of the data"
        ),
    ] = None,
    samples: Annotated[int, option("Number of inputs to propose.", **numeric(int, 1, 100))] = 1,
    target: Annotated[
        str | None, option("The target to plan for, of several.", "NAME", "all", "--target", "-t")
    ] = None,
) -> None:
    """Plan new samples: how many are needed, and where they help most.

    With --at and --std, show how many more samples bring the standard deviation at an input down to a target. In any
    case, propose inputs for new samples: within the range of the data, rounded as settings would be, or from a table.
    Targets that have a model each are planned one by one; targets that share a model have one plan.
    """
    if (at is None) != (std is None):
        raise UsageError("--at and --std belong together: an input, and the target standard deviation there")
    if std is not None and std <= 0:
        raise UsageError(f"--std must be positive, got {std:g}")
    fitted = load_model(model, "plan")
    with notes():
        columns = model_columns(fitted)
        place = None if at is None else _place(at, columns)
        models = _models(fitted, target)
        for name, one in models.items():
            if len(models) > 1:
                show(f"{name}:", style="bold")
            if transform := scale_name(one):
                which = f" of {name}" * (len(models) > 1)
                note(f"all standard deviations{which} are on the transformed scale ({transform})")
            if place is not None and std is not None:
                _show_number(one, *place, std, of)
            _show_places(one, columns, samples, goal, candidates)


def _models(model: WienerKernelRegressor, target: str | None) -> dict[str, WienerKernelRegressor]:
    """The models to plan with, by name: those of all targets, or that of one."""
    from ..evaluation.report.numbers import single_models, target_names

    scales = model.posterior_.output_scale
    names, models = target_names(getattr(model, "target_names_in_", None), len(scales)), single_models(model)
    if target is None:
        return dict(zip(names if len(models) > 1 else ["all"], models, strict=True))
    if target not in names:
        raise UsageError(f"--target {target}: the model has no such target, only {', '.join(names)}")
    k = names.index(target)
    if len(models) > 1:
        return {target: models[k]}
    one = copy(model)
    one.posterior_ = replace(model.posterior_, output_scale=scales[[k]])
    return {target: one}


def _place(at: Sequence[str], columns: list[Column]) -> tuple[str, list[float]]:
    """The input given by --at, in words and as numbers in the order of the model."""
    names = {column.name: column for column in columns}
    wanted = f"--at needs a value for every input of the model, {','.join(f'{name}=...' for name in names)}"
    place: dict[str, list[float]] = {}
    for part in (part for text in at for part in listed(text)):
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals and len(names) == 1:
            name, text = columns[0].name, name
        if name not in names:
            raise UsageError(f"{wanted}; got {part!r}")
        try:
            place[name] = names[name].values(text)
        except ValueError as error:
            raise UsageError(f"--at {part}: {error}") from None
    if missing := [name for name in names if name not in place]:
        raise UsageError(f"{wanted}; missing {', '.join(missing)}")
    shown = (f"{name} = {column.text(place[name])}" for name, column in names.items())
    return ", ".join(shown), [value for name in names for value in place[name]]


def _show_number(model: WienerKernelRegressor, place: str, point: list[float], std: float, of: str) -> None:
    from ..palette import CAUSES
    from ..posterior.separate import causes

    X = [point]
    needed, parts = model.samples_needed(X, std=std, of=of), model.uncertainty(X)
    number, bound = int(needed.number[0]), int(needed.paper_bound[0])
    # of several outputs, the largest
    shown = (
        f"{CAUSES[cause]} {float(getattr(parts, cause).max()) ** 0.5:.4g}"
        for cause in causes(model.posterior_)
        if cause != "aleatoric"
    )
    before, after = float(needed.before[0]), float(needed.after[0])
    show(f"At {place} the standard deviation of the {of} is {before:.4g} ({', '.join(shown)}).")
    if number == 0:
        show(f"This is already at most {std:g}: no more samples are needed there.")
        return
    samples = "sample there reduces" if number == 1 else "samples there reduce"
    show(f"{number} more {samples} it to {after:.4g}; the bound sigma^2 / {std:g}^2 gives {bound}.")


def _show_places(
    model: WienerKernelRegressor, columns: list[Column], samples: int, goal: str, file: Path | None
) -> None:
    import numpy as np

    if file is None:
        proposed, digits = _candidates(model, columns)
    else:
        proposed, digits = read_all(model, file)[0], [None] * len(columns)
    found = model.next_sample(proposed, goal=goal, n_samples=samples)
    stds = np.sqrt(found.variance)
    where = "Within the range of the data" if file is None else f"At the {len(proposed)} inputs of {file}"
    show(f"{where}, the {goal} standard deviation of the function is {stds[0]:.4g}.")
    for k, point in enumerate(found.points):
        effect = "mainly averages noise in the data" if found.repeat[k] else "explores new inputs"
        first = "One sample helps most" if k == 0 else "The next one"
        show(f"{first} at {_named(columns, point, digits)} ({effect}): {stds[k + 1]:.4g} after it.")


def _candidates(model: WienerKernelRegressor, columns: list[Column]) -> tuple[FloatArray, list[int | None]]:
    """Points that fill the range of the data, and inputs that have samples, every k-th of very many.

    New points are rounded to digits after the point that a setting would have, which are returned as well: to those of
    the data, and to steps of about half a percent of their range. Categories have values of the data.
    """
    import numpy as np

    from ..decisions.design import space_filling

    places = model.posterior_.smoother.places
    filling = space_filling(places.min(axis=0), places.max(axis=0), CANDIDATES)
    digits: list[int | None] = []
    for column, span in spans(columns):
        values = places[:, span]
        if column.kind == "category":
            filling[:, span] = values[np.random.default_rng(0).integers(len(values), size=len(filling))]
            digits.append(0)
        else:
            whole = column.kind == "date" and np.ptp(values) > 10  # days, hours or seconds
            few = min(0 if whole else 12, _digits(values))
            filling[:, span] = filling[:, span].round(few).clip(values.min(), values.max())
            digits.append(few)
    return np.unique(np.concatenate([filling, places[:: -(-len(places) // 256)]]), axis=0), digits


def _digits(values: FloatArray) -> int:
    """Digits after the point: those of the data, at most as many as steps of half a percent of the range need."""
    import numpy as np

    extent = float(np.ptp(values))
    if extent == 0:
        return 12
    fine = int(np.ceil(-np.log10(extent / 200)))
    return next(
        (digits for digits in range(fine - 3, fine) if np.array_equal(values.round(digits), values)), fine
    )


def _named(columns: list[Column], point: FloatArray, digits: Sequence[int | None]) -> str:
    """An input in words."""
    cells = (
        column.text(point[span], few) for (column, span), few in zip(spans(columns), digits, strict=True)
    )
    return ", ".join(f"{column.name} = {cell}" for column, cell in zip(columns, cells, strict=True))
