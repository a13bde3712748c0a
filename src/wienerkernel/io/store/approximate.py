"""Approximations as JSON, and their smoothers as arrays: the samples of neighbors and actions, or the sums of features."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...kernels import Kernel
from ...kernels.spectral import prior_variance
from ...scale import ApproximateSmoother, Approximation, FeatureSmoother, NeighborSmoother, as_approximation
from ...scale.actions import ActionSmoother
from ...scale.approximation import NAMES, Actions
from ...scale.inducing import Inducing
from ...scale.sums import Audit, Rows, Sums
from ...smoother.trend import TRENDS, Trend
from ...validation import SMALLEST, check_size, check_spans
from .archive import FormatError
from .nodes import Node, Reader, Writer, choice, entries, integer, number, of_kind
from .smoother import check_factor, check_finite, packed, per_sample, probes, unpacked

__all__ = ["approximate_from", "approximate_node", "approximation_from", "approximation_node"]

LARGEST_NUMBER = 2**53
OF_SAMPLES = ("X", "targets", "regularizer", "scale")


def approximation_node(given: Approximation | str | None, writer: Writer, name: str) -> Node:
    """Describe the argument ``approximation``; a matrix of actions gets this name."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Actions):
        matrix = not isinstance(given.kind, str)
        actions = writer.array(name, np.asarray(given.kind, dtype=np.float64)) if matrix else given.kind
        return {
            "kind": "actions",
            "actions": actions,
            "number": given.number,
            "random_state": given.random_state,
        }
    (kind,) = (kind for kind, type_ in NAMES.items() if isinstance(given, type_))
    return {"kind": kind, **asdict(given)}


def approximation_from(node: Node, reader: Reader) -> Approximation | str | None:
    """The approximation that a node describes."""
    if not isinstance(node, dict):
        return node if as_approximation(node) is not None else None
    if node.get("kind") == "actions":
        _, actions, number, seed = entries(node, "kind", "actions", "number", "random_state")
        matrix = isinstance(actions, dict)
        return Actions(
            reader.array(actions, (None, None)) if matrix else choice(actions, "subset", "cholesky"),
            None if number is None else integer(number, 1, LARGEST_NUMBER),
            integer(seed, 0, 2**63),
        )
    kind = of_kind(node, NAMES, "approximation")
    return kind(**{name: integer(value, 0, 2**63) for name, value in node.items() if name != "kind"})


def approximate_node(smoother: Any, writer: Writer) -> Node:
    """Describe an approximate smoother, and hand its arrays to the writer."""
    plain: dict[str, Node]
    if isinstance(smoother, NeighborSmoother):
        kind, plain = "neighbors", {"n_neighbors": smoother.n_neighbors, "trend": smoother.trend}
        found = {name: getattr(smoother, name) for name in OF_SAMPLES}
    elif isinstance(smoother, ActionSmoother):
        kind, plain = "actions", {"trend": smoother.trend}
        found = {name: getattr(smoother, name) for name in (*OF_SAMPLES, "actions")}
    else:
        inducing, audit, sums = smoother.inducing, smoother.audit, smoother.sums
        rows = sums.rows
        kind, plain = "features", {"trend": inducing.trend.kind, "ridge": smoother.ridge, "n": sums.n}
        plain["reservoir"] = rows.number
        found = {"points": inducing.points, "factor": packed(inducing.factor)}
        found |= {"frequencies": audit.frequencies, "audit_weights": audit.weights, "gram": packed(sums.gram)}
        found |= {"targets": sums.targets, "audit": sums.audit}
        found |= {"keys": rows.keys, "X": rows.X, "y": rows.y, "scale": rows.scale}
    return {"kind": kind, **plain, **{name: writer.array(name.lower(), a) for name, a in found.items()}}


def approximate_from(node: Node, kernel: Kernel, reader: Reader) -> ApproximateSmoother:
    """The approximate smoother that a node describes."""
    kinds: dict[str, Any] = {
        "neighbors": _neighbors_from,
        "actions": _actions_from,
        "features": _features_from,
    }
    found: Any = of_kind(node, kinds, "smoother")(node, kernel, reader)
    check_finite(*found.predict(probes(found.samples.places)))
    return found  # type: ignore[no-any-return]


def _neighbors_from(node: Node, kernel: Kernel, reader: Reader) -> NeighborSmoother:
    _, n_neighbors, trend, *arrays = entries(node, "kind", "n_neighbors", "trend", *OF_SAMPLES)
    number = integer(n_neighbors, 2, LARGEST_NUMBER)
    found = NeighborSmoother(kernel, *_rows_from(arrays, reader), choice(trend, *TRENDS), number)
    found.check_trend()
    return found


def _actions_from(node: Node, kernel: Kernel, reader: Reader) -> ActionSmoother:
    _, trend, *arrays, actions = entries(node, "kind", "trend", *OF_SAMPLES, "actions")
    rows = _rows_from(arrays, reader)
    matrix = reader.array(actions, (len(rows[0]), None))
    check_size("actions", matrix)
    return ActionSmoother(kernel, *rows, choice(trend, *TRENDS), matrix)


def _rows_from(nodes: list[Node], reader: Reader) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Inputs, targets, regularizers and noise scales of the samples."""
    X, targets = _samples_from(nodes[0], nodes[1], reader)
    regularizer = _positive(nodes[2], len(X), reader, SMALLEST**2)
    return X, targets, regularizer, _positive(nodes[3], len(X), reader, SMALLEST)


def _features_from(node: Node, kernel: Kernel, reader: Reader) -> FeatureSmoother:
    plain = ("trend", "ridge", "n", "reservoir")
    of_sums = ("gram", "targets", "audit")
    of_rows = ("keys", "X", "y", "scale")
    names = ("points", "factor", "frequencies", "audit_weights", *of_sums, *of_rows)
    _, trend, ridge, n, reservoir, *arrays = entries(node, "kind", *plain, *names)
    points, factor, frequencies, weights, gram, targets, audit, keys, X, y, scale = arrays
    X, y = _samples_from(X, y, reader)
    kept, d, n_outputs = len(X), X.shape[1], y.shape[1]
    points = reader.array(points, (None, d))
    check_size("points", points)
    p, trend = len(points), choice(trend, *TRENDS)
    q = p + {None: 0, "constant": 1, "linear": 1 + d}[trend]
    factor = unpacked(reader.array(factor, (p * (p + 1) // 2,)), p, p)
    check_factor(factor, kernel, points, 0.0)
    frequencies = reader.array(frequencies, (None, d))
    check_size("frequencies", frequencies)
    m = len(frequencies)
    weights = _positive(weights, m, reader, 1e-6)
    if p == 0 or m < 2:
        raise FormatError("model.json: there are no inducing points, or fewer than two frequencies")
    triangle = unpacked(reader.array(gram, (q * (q + 1) // 2,)), q, q)
    keys = reader.array(keys, (kept,))
    n, reservoir = integer(n, 1, LARGEST_NUMBER), integer(reservoir, 1, LARGEST_NUMBER)
    if kept > min(n, reservoir) or not np.all((keys >= 0) & (keys < 1)):
        raise FormatError("model.json: the random rows do not belong to the sums")
    sums = Sums(
        n,
        Rows(reservoir, keys, X, y, _positive(scale, kept, reader, SMALLEST)),
        triangle + np.tril(triangle, -1).T,
        reader.array(targets, (q, n_outputs)),
        reader.array(audit, (q, 2 * m)),
    )
    for name in ("gram", "targets", "audit"):
        check_size(name, getattr(sums, name))
    inducing = Inducing(kernel, points, factor, Trend(trend, points))
    rho2 = number(ridge, SMALLEST**2, SMALLEST**-2)
    return FeatureSmoother(inducing, Audit(frequencies, weights, prior_variance(kernel)), sums, rho2)


def _samples_from(X: Node, y: Node, reader: Reader) -> tuple[FloatArray, FloatArray]:
    """Inputs (n, d) and targets (n, n_y), neither of them empty."""
    inputs = reader.array(X, (None, None))
    targets = reader.array(y, (len(inputs), None))
    if 0 in inputs.shape or 0 in targets.shape:
        raise FormatError("model.json: there are no samples, inputs or outputs")
    check_size("x", inputs)
    check_size("targets", targets)
    check_spans(inputs, np.zeros(1))
    return inputs, targets


def _positive(node: Node, n: int, reader: Reader, smallest: float) -> FloatArray:
    """Positive numbers, (n,)."""
    values: Any = per_sample(node, n, reader, smallest)
    if values.ndim != 1:
        raise FormatError(f"expected {n} positive numbers, got an array of shape {values.shape}")
    return np.asarray(values)
