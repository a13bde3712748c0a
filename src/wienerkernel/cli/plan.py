"""The command ``plan``: how many more samples, and where."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ..text import number
from .console import Model, UsageError, input_names, listed, load_model, notes, numeric, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import FloatArray
    from ..regressor import WienerKernelRegressor

__all__ = ["plan"]

GRID, SPREAD = 201, 256


class Of(StrEnum):
    """Whose standard deviation is to become small."""

    function = "function"
    estimate = "estimate"


class Goal(StrEnum):
    """What new samples are to make small."""

    average = "average"
    worst = "worst"


def plan(
    model: Model,
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="The place of interest, name=number for every input; commas or several --at.",
            show_default=False,
        ),
    ] = None,
    std: Annotated[
        float | None,
        typer.Option(help="Standard deviation to be reached there.", show_default=False, **numeric(float)),
    ] = None,
    of: Annotated[
        Of,
        typer.Option(
            help="Of the function, noise and model part together, or of its estimate, the noise part alone."
        ),
    ] = Of.function,
    goal: Annotated[
        Goal, typer.Option(help="What the proposed samples lower most: the average or the worst variance.")
    ] = Goal.average,
    samples: Annotated[int, typer.Option(help="How many places to propose.", **numeric(int, 1, 100))] = 1,
) -> None:
    """Tell how many more samples a place needs for a given accuracy, and where samples help most."""
    if (at is None) != (std is None):
        raise UsageError(
            "--at and --std belong together: a place, and the standard deviation to be reached there"
        )
    if std is not None and std <= 0:
        raise UsageError(f"--std must be positive, got {std:g}")
    fitted = load_model(model)
    with notes():
        if at is not None and std is not None:
            _show_number(fitted, _place(at, input_names(fitted)), std, of.value)
        _show_places(fitted, samples, goal.value)


def _place(at: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The place that the user names, with one number for each input."""
    wanted = f"--at needs a number for every input of the model, {','.join(f'{name}=...' for name in names)}"
    place: dict[str, float] = {}
    for part in (part for text in at for part in listed(text)):
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals and len(names) == 1:
            name, text = names[0], name
        if name not in names:
            raise UsageError(f"{wanted}; got {part!r}")
        try:
            place[name] = number(text)
        except ValueError as error:
            raise UsageError(f"--at {part}: {error}") from None
    if missing := [name for name in names if name not in place]:
        raise UsageError(f"{wanted}; missing {', '.join(missing)}")
    return {name: place[name] for name in names}


def _show_number(model: WienerKernelRegressor, place: dict[str, float], std: float, of: str) -> None:
    X = [list(place.values())]
    needed, parts = model.samples_needed(X, std=std, of=of), model.uncertainty(X)
    number, bound = int(needed.number[0]), int(needed.paper_bound[0])
    what = "the function" if of == "function" else "the estimate"
    noise, model_part = (
        float(part.max()) ** 0.5 for part in (parts.noise, parts.model)
    )  # of the largest output
    show(
        f"At {_named(place)} the standard deviation of {what} is {float(needed.before[0]):.4g} "
        f"(noise {noise:.4g}, model {model_part:.4g})."
    )
    if number == 0:
        show(f"That is at most {std:g} already: no more samples are needed there.")
    else:
        show(
            f"{number} more {'sample' if number == 1 else 'samples'} there bring it to {float(needed.after[0]):.4g}; "
            f"the noise variance over {std:g} squared would say {bound}."
        )


def _show_places(model: WienerKernelRegressor, samples: int, goal: str) -> None:
    import numpy as np

    names = input_names(model)
    found = model.next_sample(_candidates(model), goal=goal, n_samples=samples)
    stds = np.sqrt(found.variance)
    show(f"Within the range of the data, the {goal} standard deviation of the function is {stds[0]:.4g}.")
    for k, point in enumerate(found.points):
        place = dict(zip(names, map(float, point), strict=True))
        kind = "noise prevails, as at a repeat" if found.repeat[k] else "a place not looked at yet"
        first = "One sample helps most" if k == 0 else "Then one"
        show(f"{first} at {_named(place)} ({kind}): {stds[k + 1]:.4g} after it.")


def _candidates(model: WienerKernelRegressor) -> FloatArray:
    """A grid over the range of one input, points spread evenly over that of several, and places that have samples."""
    import numpy as np

    places = model.posterior_.smoother.places
    low, high = places.min(axis=0), places.max(axis=0)
    if places.shape[1] == 1:
        spread = np.linspace(low, high, GRID)
    else:
        from scipy.stats.qmc import Sobol

        spread = low + (high - low) * Sobol(places.shape[1], scramble=False).random(SPREAD)
    some = places[:: -(-len(places) // SPREAD)]
    return np.concatenate([spread, some])


def _named(place: dict[str, float]) -> str:
    return ", ".join(f"{name} = {number:.5g}" for name, number in place.items())
