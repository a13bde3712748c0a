"""The command ``plan``: how many more samples are needed, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from ..text import number
from .console import (
    Model,
    UsageError,
    input_names,
    listed,
    load_model,
    notes,
    numeric,
    option,
    say,
    scale_name,
    show,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import FloatArray
    from ..regressor import WienerKernelRegressor

__all__ = ["plan"]

AT = "NAME=NUMBER"
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
    samples: Annotated[int, option("Number of inputs to propose.", **numeric(int, 1, 100))] = 1,
) -> None:
    """Plan new samples: how many are needed, and where they help most.

    With --at and --std, show how many more samples bring the standard deviation at an input down to a target. In any
    case, propose inputs for new samples within the range of the data.
    """
    if (at is None) != (std is None):
        raise UsageError("--at and --std belong together: an input, and the target standard deviation there")
    if std is not None and std <= 0:
        raise UsageError(f"--std must be positive, got {std:g}")
    fitted = load_model(model)
    with notes():
        if transform := scale_name(fitted):
            say(f"note: all standard deviations are on the transformed scale ({transform})", style="yellow")
        if at is not None and std is not None:
            _show_number(fitted, _place(at, input_names(fitted)), std, of)
        _show_places(fitted, samples, goal)


def _place(at: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The values given by --at, one for each input, in the order of the model."""
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
    from ..palette import CAUSES
    from ..posterior.separate import causes

    X = [list(place.values())]
    needed, parts = model.samples_needed(X, std=std, of=of), model.uncertainty(X)
    number, bound = int(needed.number[0]), int(needed.paper_bound[0])
    what = "the function" if of == "function" else "the estimate"
    # of several outputs, the largest
    shown = (
        f"{CAUSES[cause]} {float(getattr(parts, cause).max()) ** 0.5:.4g}"
        for cause in causes(model.posterior_)
        if cause != "aleatoric"
    )
    show(
        f"At {_named(place)} the standard deviation of {what} is {float(needed.before[0]):.4g} ({', '.join(shown)})."
    )
    if number == 0:
        show(f"This is already at most {std:g}: no more samples are needed there.")
    else:
        show(
            f"{number} more {'sample' if number == 1 else 'samples'} there reduce it to {float(needed.after[0]):.4g}; "
            f"the bound sigma^2 / {std:g}^2 gives {bound}."
        )


def _show_places(model: WienerKernelRegressor, samples: int, goal: str) -> None:
    import numpy as np

    names = input_names(model)
    found = model.next_sample(_candidates(model), goal=goal, n_samples=samples)
    stds = np.sqrt(found.variance)
    show(f"Within the range of the data, the {goal} standard deviation of the function is {stds[0]:.4g}.")
    for k, point in enumerate(found.points):
        place = dict(zip(names, map(float, point), strict=True))
        effect = "mainly averages noise in the data" if found.repeat[k] else "explores new inputs"
        first = "One sample helps most" if k == 0 else "The next one"
        show(f"{first} at {_named(place)} ({effect}): {stds[k + 1]:.4g} after it.")


def _candidates(model: WienerKernelRegressor) -> FloatArray:
    """Points that fill the range of the data, and inputs that have samples, every k-th of very many."""
    import numpy as np

    from ..decisions.design import space_filling

    places = model.posterior_.smoother.places
    filling = space_filling(places.min(axis=0), places.max(axis=0), CANDIDATES)
    return np.concatenate([filling, places[:: -(-len(places) // 256)]])


def _named(place: dict[str, float]) -> str:
    return ", ".join(f"{name} = {number:.5g}" for name, number in place.items())
