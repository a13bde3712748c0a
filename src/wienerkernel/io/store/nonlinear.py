"""Models whose estimate is not linear in y as arrays: coordinates, samples, and the law of the weights."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ...kernels import Kernel
from ...losses import (
    EpsilonInsensitive,
    FullPosterior,
    Huber,
    Loss,
    LossPosterior,
    NegativeLogDensity,
    NonlinearPosterior,
    Pinball,
)
from ...losses.coordinates import Coordinates, Observed
from ...losses.estimate import influence_weights
from ...losses.posterior import DrawnWeights, NormalWeights, Weights
from ...losses.propagation import Propagation, gaussian
from ...losses.sampling import METHODS, Draws
from ...losses.score import Score
from ...noise import Noise
from ...smoother.trend import TRENDS, Trend
from ...validation import SMALLEST, check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, as_plain, choice, entries, from_plain, integer, number, of_kind
from .smoother import check_factor, packed, per_sample, unpacked

__all__ = ["loss_from", "loss_node", "nonlinear_from", "nonlinear_node"]

LOSSES: dict[str, Any] = {
    "huber": Huber,
    "pinball": Pinball,
    "epsilon-insensitive": EpsilonInsensitive,
    "negative log density": NegativeLogDensity,
}
NAMED = ("squared", "absolute", "efficient")
COORDINATES = ("trend", "places", "pivots", "factor", "phi", "y", "scale", "index")
PROPAGATION = ("residual", "sweeps", "power", "log_evidence")
SAMPLING = ("r_hat", "effective", "method")
SCORE = tuple(field.name for field in fields(Score))
CLOSE = 1e-6
POSITIVE = np.nextafter(0, 1)
LARGEST_NUMBER = 2**53


def loss_node(loss: Any) -> Node:
    """Describe the argument ``loss``."""
    if isinstance(loss, str):
        return choice(loss, *NAMED)
    (kind,) = (name for name, type_ in LOSSES.items() if type(loss) is type_)
    return {"kind": kind, **{field.name: as_plain(getattr(loss, field.name), kind) for field in fields(loss)}}


def loss_from(node: Node) -> Loss | str:
    """The loss that a node describes."""
    if not isinstance(node, dict):
        return choice(node, *NAMED)  # type: ignore[no-any-return]
    kind = of_kind(node, LOSSES, "loss")
    names = [field.name for field in fields(kind)]
    _, *values = entries(node, "kind", *names)
    found = dict(zip(names, map(from_plain, values), strict=True))
    found["n_draws"] = integer(found["n_draws"], 1, LARGEST_NUMBER)
    found |= {name: number(value) for name, value in found.items() if name not in ("law", "n_draws")}
    return kind(**found)  # type: ignore[no-any-return]


def nonlinear_node(posterior: Any, writer: Writer) -> Node:
    """Describe a model, and hand its arrays to the writer."""
    coordinates, observed = posterior.coordinates, posterior.observed
    found = {"places": coordinates.places, "pivots": coordinates.pivots, "factor": packed(coordinates.factor)}
    found |= {"phi": coordinates.phi, "y": observed.y, "scale": observed.scale, "index": observed.index}
    plain: dict[str, Node] = {"setting": posterior.setting, "trend": coordinates.trend.kind}
    weights = posterior.weights
    if isinstance(posterior, LossPosterior):
        plain |= {"kind": "loss", "loss": loss_node(posterior.loss)}
        plain |= {name: as_plain(getattr(posterior.score, name), name) for name in SCORE}
        plain |= {"lam": as_plain(posterior.lam, "lam"), "kkt": as_plain(posterior.kkt, "kkt")}
        found["estimate"] = posterior.estimate
    else:
        propagation, draws = posterior.propagation, posterior.draws
        plain |= {name: as_plain(getattr(propagation, name), name) for name in PROPAGATION}
        plain |= {"kind": "posterior", "sampling": None}
        if draws is not None:
            plain["sampling"] = {name: as_plain(getattr(draws, name), name) for name in SAMPLING}
        found |= {"tau": propagation.tau, "nu": propagation.nu}
    drawn = writer.array("draws", weights.draws) if isinstance(weights, DrawnWeights) else None
    return {**plain, **{name: writer.array(name, a) for name, a in found.items()}, "draws": drawn}


def nonlinear_from(node: Node, kernel: Kernel, noise: Noise, reader: Reader) -> NonlinearPosterior:
    """The model that a node describes, for a kernel and a noise law, without a level and a transform."""
    make: Any = of_kind(node, {"loss": _loss_model_from, "posterior": _posterior_from}, "model")
    node = dict(node)
    node.pop("kind")
    arrays = entries({name: node.pop(name, None) for name in COORDINATES}, *COORDINATES)
    coordinates, observed = _coordinates_from(arrays, kernel, reader)
    draws, setting = node.pop("draws", None), node.pop("setting", None)
    if not isinstance(setting, str) or len(setting) > 200:
        raise FormatError("model.json: setting must be a short text")
    weights = None
    if draws is not None:
        weights = DrawnWeights(reader.array(draws, (None, coordinates.phi.shape[1])))
        check_size("draws", weights.draws)
        if not len(weights.draws):
            raise FormatError("model.json: there are no draws")
    return make(node, setting, noise, coordinates, observed, weights, reader)  # type: ignore[no-any-return]


def _coordinates_from(
    nodes: tuple[Node, ...], kernel: Kernel, reader: Reader
) -> tuple[Coordinates, Observed]:
    trend, places, pivots, factor, phi, y, scale, index = nodes
    places = reader.array(places, (None, None))
    if 0 in places.shape:
        raise FormatError("model.json: there are no samples or inputs")
    check_size("places", places)
    n, d = places.shape
    index = reader.array(index, (None,), kind="i").astype(np.intp, copy=False)
    pivots = reader.array(pivots, (None,), kind="i").astype(np.intp, copy=False)
    if index.size < n or not np.array_equal(np.unique(index), np.arange(n)):
        raise FormatError("index must assign every sample to a place, and every place a sample")
    if len(np.unique(pivots)) < len(pivots) or not np.isin(pivots, np.arange(n)).all():
        raise FormatError("pivots must be different places")
    r, q = len(pivots), {None: 0, "constant": 1, "linear": 1 + d}[choice(trend, *TRENDS)]
    factor = unpacked(reader.array(factor, (r * (r + 1) // 2,)), r, r)
    check_factor(factor, kernel, places[pivots], 0.0)
    phi = reader.array(phi, (n, r + q))
    check_size("phi", phi)
    lengths, prior = np.einsum("ij,ij->i", phi[:, :r], phi[:, :r]), kernel.diag(places)
    basis = Trend(trend, places)
    if not np.all(lengths <= prior * (1 + CLOSE)) or not np.allclose(phi[:, r:], basis(places)):
        raise FormatError("the features do not belong to the kernel and the trend")
    y = reader.array(y, (len(index),))
    check_size("y", y)
    scales = per_sample(scale, len(index), reader, SMALLEST)
    if scales.ndim != 1:
        raise FormatError("the model needs independent noise")
    return Coordinates(kernel, places, basis, pivots, factor, phi), Observed(y, scales, index, places)


def _loss_model_from(
    node: dict[str, Node],
    setting: str,
    noise: Noise,
    coordinates: Coordinates,
    observed: Observed,
    weights: Weights | None,
    reader: Reader,
) -> LossPosterior:
    loss, estimate, lam, kkt, center, *rest = entries(node, "loss", "estimate", "lam", "kkt", *SCORE)
    loss = loss_from(loss)
    if isinstance(loss, str) or (loss.law == "influence") != (weights is None):
        raise FormatError("model.json: the law of the estimate does not belong to the loss")
    score = Score(number(center), *(number(value, POSITIVE) for value in rest))
    estimate = reader.array(estimate, (coordinates.phi.shape[1],))
    check_size("estimate", estimate)
    lam = number(lam, POSITIVE)
    if weights is None:
        weights = influence_weights(coordinates, observed, noise, loss.curve(noise), score, lam, estimate)
    return LossPosterior(
        setting,
        noise,
        coordinates,
        estimate,
        weights,
        loss=loss,
        score=score,
        lam=lam,
        kkt=number(kkt, 0.0, np.inf),
        observed=observed,
    )


def _posterior_from(
    node: dict[str, Node],
    setting: str,
    noise: Noise,
    coordinates: Coordinates,
    observed: Observed,
    weights: DrawnWeights | None,
    reader: Reader,
) -> FullPosterior:
    tau, nu, sampling, *numbers = entries(node, "tau", "nu", "sampling", *PROPAGATION)
    residual, sweeps, power, evidence = numbers
    tau, nu = (reader.array(site, (len(observed.y),)) for site in (tau, nu))
    found = Propagation(
        coordinates,
        observed,
        noise,
        tau,
        nu,
        number(residual, 0.0, np.inf),
        integer(sweeps, 0, LARGEST_NUMBER),
        number(power, POSITIVE, 1.0),
        number(evidence, -np.inf, np.inf),
    )
    normal = gaussian(coordinates, observed, tau, nu)
    if normal is None or not np.all(np.isfinite(normal.mean_at)):
        raise FormatError("the sites do not belong to a proper posterior")
    draws = None
    if (sampling is None) != (weights is None):
        raise FormatError("model.json: draws and their diagnostics belong together")
    if weights is not None:
        disagreement, effective, method = entries(sampling, *SAMPLING)
        draws = Draws(
            weights.draws,
            number(disagreement, 0.0, np.inf),
            number(effective, 0.0, np.inf),
            choice(method, *METHODS),
        )
    return FullPosterior(setting, noise, found, weights or NormalWeights(normal), draws)
