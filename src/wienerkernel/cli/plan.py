"""The command ``plan``: how many more samples are needed, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from .console import note, notes, show
from .options import Model, UsageError, numeric, option

__all__ = ["plan"]

AT = "NAME=VALUE"


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
    from .model import load_model, model_columns, scale_name
    from .planning import parsed_place, planned_models, show_number, show_places

    fitted = load_model(model, "plan")
    with notes():
        columns = model_columns(fitted)
        place = None if at is None else parsed_place(at, columns)
        models = planned_models(fitted, target)
        for name, one in models.items():
            if len(models) > 1:
                show(f"{name}:", style="bold")
            if transform := scale_name(one):
                which = f" of {name}" * (len(models) > 1)
                note(f"all standard deviations{which} are on the transformed scale ({transform})")
            if place is not None and std is not None:
                show_number(one, *place, std, of)
            show_places(one, columns, samples, goal, candidates)
