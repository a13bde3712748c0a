"""Kernels, transforms, losses, approximations, and how columns of a table become inputs: numbers and names only."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from ...kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Power, Product, RationalQuadratic, Sum
from ...losses import EpsilonInsensitive, Huber, NegativeLogDensity, Pinball
from ...scale import Features, Neighbors
from ...scale.approximation import Actions
from ...transform import BoxCox, YeoJohnson
from ...validation import SMALLEST, largest
from ..columns import KINDS, UNITS, Column
from .nodes import COUNT, FLAG, Array, Record, choice, each, number, wrong

__all__ = ["RECORDS"]

PARAMETER: Any = int | float | str | tuple | None
KERNELS: Any = (Constant, Linear, Matern, Periodic, Power, Product, RationalQuadratic, RBF, Sum)
OPERANDS = dict.fromkeys(("k1", "k2", "kernel"), Kernel)
LOSSES: Any = (Huber, Pinball, EpsilonInsensitive, NegativeLogDensity)
LOSS = {"law": str, "n_draws": COUNT}
SEED = number(0, 2**63, int)


def _check_column(column: Column) -> None:
    levels, dated = column.levels, column.kind == "date"
    choice(*(UNITS if dated else ("",)))(column.unit, "unit")
    if (
        (column.kind == "category") != bool(levels)
        or len(set(levels)) < len(levels)
        or dated != bool(column.origin)
    ):
        raise wrong("columns", f"{column.name[:80]!r} is not a column of the kind {column.kind}")
    if dated:
        datetime.fromisoformat(column.origin)


RECORDS = [
    *(
        Record(kind, {part.name: OPERANDS.get(part.name, PARAMETER) for part in fields(kind)})
        for kind in KERNELS
    ),
    *(Record(kind, {part.name: LOSS.get(part.name, number()) for part in fields(kind)}) for kind in LOSSES),
    *(
        Record(kind, {"lam": number(*kind.bounds), "unit": number(SMALLEST, largest()), "free": FLAG})
        for kind in (BoxCox, YeoJohnson)
    ),
    Record(Neighbors, {"n_neighbors": SEED}),
    Record(Features, dict.fromkeys(("n_features", "n_audits", "reservoir", "random_state"), SEED)),
    Record(
        Actions,
        {
            "name": choice("subset", "cholesky", None),
            "matrix": Array("_ _", bounded=False, optional=True),
            "number": number(1, 2**53, int, optional=True),
            "random_state": SEED,
        },
        take=lambda given: (
            {"name": given.kind, "matrix": None}
            if isinstance(given.kind, str)
            else {"name": None, "matrix": np.asarray(given.kind, dtype=np.float64)}
        ),
        make=lambda name, matrix, **others: Actions(matrix if name is None else name, **others),
    ),
    Record(
        Column,
        {"name": str, "type": choice(*KINDS), "levels": each(str), "origin": str, "unit": str},
        take=lambda column: {"type": column.kind},
        make=lambda type, **others: Column(kind=type, **others),
        check=_check_column,
    ),
]
