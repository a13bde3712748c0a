"""What ``plan`` shows: numbers of samples at an input, and inputs for new samples."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._typing import FloatArray
from ..decisions.design import space_filling
from ..evaluation.report.numbers import single_models, target_names
from ..io.columns import Column
from ..palette import CAUSES
from ..posterior.separate import causes
from ..regressor import WienerKernelRegressor
from .console import show
from .model import read_all
from .options import UsageError, listed
from .read import spans

__all__ = ["parsed_place", "planned_models", "show_number", "show_places"]

CANDIDATES = 201


def planned_models(model: WienerKernelRegressor, target: str | None) -> dict[str, WienerKernelRegressor]:
    """The models to plan with, by name: those of all targets, or that of one."""
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


def parsed_place(at: Sequence[str], columns: list[Column]) -> tuple[str, list[float]]:
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


def show_number(model: WienerKernelRegressor, place: str, point: list[float], std: float, of: str) -> None:
    """Show how many more samples at a place bring the standard deviation there down to ``std``."""
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


def show_places(
    model: WienerKernelRegressor, columns: list[Column], samples: int, goal: str, file: Path | None
) -> None:
    """Propose inputs for new samples: within the range of the data, or from a table."""
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
