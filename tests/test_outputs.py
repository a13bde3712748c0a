"""Several outputs: each has its own scale, which the posterior owns, and everything is in its units."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest

import wienerkernel
from wienerkernel import RBF, Constant, FeatureMap, WienerKernelRegressor
from wienerkernel.cli import main
from wienerkernel.decisions.norms import rkhs_norm
from wienerkernel.evaluation.report.numbers import contents
from wienerkernel.noise.family import Family
from wienerkernel.tuning import Data, tune
from wienerkernel.tuning.data import Parameters
from wienerkernel.tuning.likelihood import Likelihood

OF = ("estimate", "function", "observation")
Z = np.linspace(-1, 7, 9)[:, None]


def samples(n=40, seed=0):
    """Inputs, and outputs of sizes 1 and 1000 with noise of a fifth of that."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, 1))
    f = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    return X, (f + 0.2 * rng.normal(size=f.shape)) * [1.0, 1000.0]


def twice(noise=None, tuning="likelihood", trend=None, **options):
    """A model of one output, and one of that output and a thousand times as much."""
    X, y = samples()[0], samples()[1][:, 0]
    single = WienerKernelRegressor(noise=noise, tuning=tuning, trend=trend, **options).fit(X, y)
    both = WienerKernelRegressor(noise=noise, tuning=tuning, trend=trend, **options)
    return single, both.fit(X, np.column_stack([y, 1000 * y]))


def same(both, single, power=1, rtol=1e-6):
    """The last axis of ``both`` is that of the outputs."""
    factors = np.array([1.0, 1000.0]) ** power
    np.testing.assert_allclose(both / factors, np.stack([single, single], axis=-1), rtol=rtol, atol=1e-9)


def test_every_output_has_intervals_of_its_own_size_and_nominal_coverage():
    X, Y = samples(60)
    model = WienerKernelRegressor().fit(X, Y)
    X_new, Y_new = samples(400, seed=1)
    ends = model.predict_interval(X_new, 0.9)
    width = np.median(ends[..., 1] - ends[..., 0], axis=0)
    np.testing.assert_allclose(width, [0.7, 700.0], rtol=0.25)  # 3.3 standard deviations
    inside = np.mean((ends[..., 0] <= Y_new) & (ends[..., 1] >= Y_new), axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.06)
    np.testing.assert_allclose(np.prod(model.output_scale_), 1.0)


@pytest.mark.parametrize(
    ("noise", "tuning", "trend"),
    [
        (None, "likelihood", None),
        (None, "likelihood", "constant"),
        ("laplace", "loo", None),
        (None, "likelihood", "linear"),
    ],
)
def test_an_output_and_a_multiple_of_it_are_the_single_output(noise, tuning, trend):
    single, both = twice(noise, tuning, trend)
    same(both.predict(Z), single.predict(Z))
    for part in ("noise", "model", "aleatoric", "epistemic", "total"):
        same(getattr(both.uncertainty(Z), part), getattr(single.uncertainty(Z), part), 2)
    for of in OF:
        ours, theirs = both.predict_distribution(Z, of), single.predict_distribution(Z, of)
        same(ours.ppf(0.9), theirs.ppf(0.9))
        same(ours.std(), theirs.std())
        same(ours.pdf(ours.mean()), theirs.pdf(theirs.mean()), -1, rtol=1e-5)
    length = "kernel.k2.length_scale"
    assert both.tuning_result_.parameters[length] == pytest.approx(
        single.tuning_result_.parameters[length], rel=1e-6
    )
    n = len(samples()[0])
    assert both.tuning_result_.value == pytest.approx(
        2 * single.tuning_result_.value - n * np.log(1000), rel=1e-6
    )
    if tuning == "likelihood":
        assert both.log_likelihood() == pytest.approx(both.tuning_result_.value, rel=1e-9)


def test_the_order_of_the_outputs_does_not_matter():
    X, Y = samples()
    model, turned = WienerKernelRegressor().fit(X, Y), WienerKernelRegressor().fit(X, Y[:, ::-1])
    np.testing.assert_allclose(turned.output_scale_[::-1], model.output_scale_, rtol=1e-6)
    np.testing.assert_allclose(turned.predict(Z)[:, ::-1], model.predict(Z), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        turned.predict(Z, return_std=True)[1][:, ::-1], model.predict(Z, return_std=True)[1], rtol=1e-6
    )


def test_scales_maximize_the_likelihood_and_do_not_enter_its_gradient():
    X, Y = samples(20)
    data, parameters = Data(X, Y, np.ones(20)), Parameters(1.0 * RBF(1.0), Family("norm"))
    likelihood, point = Likelihood(data, parameters, own_scales=True), np.array([2.0, 0.1, -1.0])
    scale = likelihood.output_scale(point)
    assert np.prod(scale) == pytest.approx(1.0)
    other = [
        Likelihood(Data(X, Y / c, np.ones(20)), parameters).value(point)
        for c in (scale, scale * [1.1, 1 / 1.1], scale * [1 / 1.1, 1.1])
    ]
    assert likelihood.value(point) == pytest.approx(other[0])
    assert other[0] > max(other[1:])
    step = 1e-5 * np.eye(3)
    expected = [(likelihood.value(point + h) - likelihood.value(point - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(likelihood(point)[1], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kernel", "noise", "tuning"),
    [
        (None, "norm(0, 1)", "likelihood"),
        (RBF(1.0), None, "likelihood"),
        (Constant(9.0, "fixed") * RBF(1.0), None, "likelihood"),
        (1.0 * RBF(1.0) + RBF(2.0), None, "likelihood"),
        (None, Family("norm", loc=0.5), "likelihood"),
        (None, Family("norm", bounds={"std": (0.2, 0.2)}), "likelihood"),
        (None, None, None),
    ],
)
def test_outputs_have_one_scale_where_amplitude_or_noise_is_given(kernel, noise, tuning):
    X, Y = samples(12)
    model = WienerKernelRegressor(kernel, noise=noise, tuning=tuning).fit(X, Y)
    assert model.output_scale_.tolist() == [1.0, 1.0]


def test_one_output_has_the_scale_one():
    X, Y = samples(12)
    assert WienerKernelRegressor().fit(X, Y[:, 1]).output_scale_.tolist() == [1.0]


def test_an_output_that_is_zero_has_the_typical_scale():
    X, Y = samples(20)
    model = WienerKernelRegressor().fit(X, np.column_stack([Y, np.zeros(20)]))
    assert model.output_scale_[2] == pytest.approx(1.0)
    assert np.prod(model.output_scale_) == pytest.approx(1.0)
    assert np.all(np.isfinite(model.predict_interval(Z)))


def refitted(model, X, Y):
    """The model with the parameters that another has learned, on outputs that were divided by their scales."""
    return WienerKernelRegressor(model.kernel_, noise=model.noise_, tuning=None).fit(
        X, Y / model.output_scale_
    )


def test_samples_that_are_added_or_forgotten_keep_the_scales():
    X, Y = samples()
    model = WienerKernelRegressor().fit(X[:30], Y[:30])
    scale = model.output_scale_
    for change, kept in (
        (lambda: model.partial_fit(X[30:], Y[30:]), range(40)),
        (lambda: model.forget([0, 7]), None),
    ):
        change()
        rows = np.delete(np.arange(40), [0, 7]) if kept is None else list(kept)
        expected = refitted(model, X[rows], Y[rows])
        np.testing.assert_allclose(model.predict(Z), scale * expected.predict(Z), rtol=1e-8)
        np.testing.assert_allclose(
            model.uncertainty(Z).model, scale**2 * expected.uncertainty(Z).model, rtol=1e-6, atol=1e-9
        )
        assert model.log_likelihood() == pytest.approx(expected.log_likelihood(), rel=1e-8)


def test_a_saved_model_keeps_the_scales(tmp_path):
    X, Y = samples(20)
    model = WienerKernelRegressor().fit(X, Y)
    model.save(tmp_path / "model.wk")
    again = wienerkernel.load(tmp_path / "model.wk")
    assert (
        again.output_scale_.tolist()
        == model.output_scale_.tolist()
        == again.tuning_result_.output_scale.tolist()
    )
    assert again.predict_interval(Z).tolist() == model.predict_interval(Z).tolist()
    assert again.uncertainty(Z).total.tolist() == model.uncertainty(Z).total.tolist()


def test_moments_intervals_and_draws_are_in_units_of_the_output():
    single, both = twice("gamma")
    for of in OF:
        ours, theirs = both.predict_distribution(Z, of), single.predict_distribution(Z, of)
        for order in range(1, 5):
            same(ours.cumulant(order), theirs.cumulant(order), order, rtol=1e-4)
        for name in ("skewness", "kurtosis"):
            same(getattr(ours, name)(), getattr(theirs, name)(), 0, rtol=1e-4)
        at = np.stack([theirs.ppf(0.3), 1000 * theirs.ppf(0.3)], axis=-1)
        same(ours.cdf(at), theirs.cdf(theirs.ppf(0.3)), 0, rtol=1e-5)
        same(ours.sf(at), theirs.sf(theirs.ppf(0.3)), 0, rtol=1e-5)
        same(np.exp(ours.logpdf(at)), theirs.pdf(theirs.ppf(0.3)), -1, rtol=1e-4)
        same(ours.pdf(at, return_error=True)[0], theirs.pdf(theirs.ppf(0.3)), -1, rtol=1e-4)
        for name in ("interval", "hdi"):
            for mine, yours in zip(getattr(ours, name)(0.8), getattr(theirs, name)(0.8), strict=True):
                same(mine, yours, rtol=1e-4)
        draws = ours.rvs(20_000, random_state=0)
        np.testing.assert_allclose(draws.std(axis=0), ours.std(), rtol=0.05)
        np.testing.assert_allclose(draws.mean(axis=0), ours.mean(), atol=0.03 * ours.std().max())


def test_everything_that_a_model_says_is_in_units_of_the_output():
    single, both = twice()
    X = samples()[0]
    same(both.predict(Z, return_std=True)[1], single.predict(Z, return_std=True)[1])
    same(both.predict(Z, return_cov=True)[1], single.predict(Z, return_cov=True)[1], 2, rtol=1e-5)
    for part, power in (("mean", 1), ("residual", 1), ("noise", 2), ("model", 2), ("total", 2)):
        same(getattr(both.loo(), part), getattr(single.loo(), part), power, rtol=1e-5)
    ours, theirs = both.predict_gradient(Z), single.predict_gradient(Z)
    for part, power in (("mean", 1), ("noise", 2), ("model", 2)):
        same(np.moveaxis(getattr(ours, part), 1, -1), getattr(theirs, part), power, rtol=1e-5)
    for query in (Z[4], Z):
        parts = zip(both.predictor()(query), single.predictor()(query), (1, 2, 2), strict=True)
        for mine, yours, power in parts:
            same(mine, yours, power, rtol=1e-5)
    lower, upper = both.bound(Z, norm=5.0)
    for mine, yours in zip((lower, upper), single.bound(Z, norm=5.0), strict=True):
        same(mine, yours, rtol=1e-5)
    same(rkhs_norm(both.posterior_), rkhs_norm(single.posterior_), 0)
    ratio = [single.ridge_, 2 * single.ridge_]
    common = np.array(ratio) * 1000  # the square of the scale
    same(both.ridge_path(common).mean(Z), single.ridge_path(ratio).mean(Z)[..., 0])
    same(both.ridge_path(common).leave_one_out()[0], single.ridge_path(ratio).leave_one_out()[0][..., 0])
    assert both.score(X, samples()[1][:, :1] * [1, 1000]) == pytest.approx(
        single.score(X, samples()[1][:, 0])
    )
    chaos = both.predict_distribution(Z).chaos()
    same(chaos.mean(), single.predict_distribution(Z).chaos().mean())
    same(chaos.var(), single.predict_distribution(Z).chaos().var(), 2)


def test_common_quantiles_are_computed_once_for_all_outputs(monkeypatch):
    _, both = twice()
    law, asked = both.predict_distribution(Z), []
    ppf = law.law.ppf
    monkeypatch.setattr(law.law, "ppf", lambda q: asked.append(np.shape(q)) or ppf(q))
    assert law.ppf(0.9).shape == law.interval()[0].shape == (9, 2)
    assert law.ppf(np.full((3, 1, 1), 0.9)).shape == (3, 9, 2)
    assert asked == [(1, 1), (1, 1), (1, 3, 1)]


def test_scores_are_those_of_the_single_outputs():
    single, both = twice("laplace")
    X, y = samples(20, seed=2)[0], samples(20, seed=2)[1][:, 0]
    for data in ((), (X, y)):
        ours = both.score_report(*((X, np.column_stack([y, 1000 * y])) if data else ()))
        theirs = single.score_report(*data)
        same(ours.pit, theirs.pit, 0, rtol=1e-5)
        same(ours.standardized, theirs.standardized, 0, rtol=1e-5)
        same(ours.crps, theirs.crps, 1, rtol=1e-5)
        same(np.exp(ours.log_score), np.exp(theirs.log_score), -1, rtol=1e-4)


def test_plans_are_made_for_the_largest_output():
    single, both = twice()
    plan, alone = both.samples_needed(Z, std=50.0), single.samples_needed(Z, std=0.05)
    assert plan.number.tolist() == alone.number.tolist()
    assert plan.paper_bound.tolist() == alone.paper_bound.tolist()
    np.testing.assert_allclose(plan.before, 1000 * alone.before, rtol=1e-6)
    np.testing.assert_allclose(plan.after, 1000 * alone.after, rtol=1e-6)
    for goal, square in (("worst", 1e6), ("average", 0.5 * (1 + 1e6))):
        ours, theirs = (model.next_sample(Z, goal=goal, n_samples=2) for model in (both, single))
        assert ours.index.tolist() == theirs.index.tolist()
        for part in ("noise", "model", "variance"):
            np.testing.assert_allclose(getattr(ours, part), square * getattr(theirs, part), rtol=1e-5)


def test_features_have_weights_in_units_of_the_output():
    X, Y = samples()
    phi = FeatureMap(lambda x: np.hstack([np.ones_like(x), x]))
    model = WienerKernelRegressor(phi, trend=None).fit(X, Y)
    weights = model.feature_weights()
    assert weights.coefficients.shape == (2, 2, 41)
    np.testing.assert_allclose(phi.features(Z) @ weights.mean(), model.predict(Z), rtol=1e-8)


def test_arrays_of_other_libraries_have_the_scales(tmp_path):
    torch = pytest.importorskip("torch")
    X, Y = samples()
    expected = WienerKernelRegressor().fit(X, Y)
    model = WienerKernelRegressor().fit(torch.asarray(X), torch.asarray(Y))
    mean, parts = model.predict(torch.asarray(Z), return_uncertainty=True)
    assert isinstance(mean, torch.Tensor)
    np.testing.assert_allclose(np.asarray(mean), expected.predict(Z), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(parts.total), expected.uncertainty(Z).total, rtol=1e-4)
    np.testing.assert_allclose(
        np.asarray(model.predict(torch.asarray(Z), return_cov=True)[1]),
        expected.predict(Z, return_cov=True)[1],
        rtol=1e-3,
        atol=1e-3,
    )


def test_the_report_has_the_scales_of_the_outputs():
    single, both = twice()
    told, alone = contents(both), contents(single)
    np.testing.assert_allclose(told["scales"], both.output_scale_, rtol=1e-5)
    assert told["shares"] == pytest.approx(alone["shares"], rel=1e-4)
    part, one = told["slices"][0], alone["slices"][0]
    np.testing.assert_allclose(part["data"]["y"][1], np.multiply(one["data"]["y"][0], 1000), rtol=1e-5)
    for k, factor in enumerate((1.0, 1000.0)):
        scale = told["scales"][k]
        np.testing.assert_allclose(
            part["mean"][k], np.multiply(one["mean"][0], factor), rtol=1e-3, atol=1e-4 * factor
        )
        high = np.array(one["tubes"]["observation"]["high"])
        np.testing.assert_allclose(
            scale * np.array(part["tubes"]["observation"]["high"]), factor * high, rtol=1e-4
        )
        noise = np.array(one["variance"]["noise"])
        np.testing.assert_allclose(
            scale**2 * np.array(part["variance"]["noise"]), factor**2 * noise, rtol=1e-3
        )
    assert {"scale of y1", "scale of y2"} <= {row["name"] for row in told["hyperparameters"]}
    assert alone["scales"] == [1.0]
    json.dumps(told)


def test_the_command_line_predicts_every_output_in_its_units(tmp_path, monkeypatch):
    _, both = twice()
    model, new, out = (tmp_path / name for name in ("model.wk", "new.csv", "out.csv"))
    both.save(model)
    new.write_text("\n".join(["x", *map(str, Z[:, 0].tolist())]))
    monkeypatch.setattr(
        sys, "argv", ["wienerkernel", *map(str, ("predict", model, new, "--inputs", "x", "-o", out))]
    )
    with pytest.raises(SystemExit):
        main()
    with out.open() as file:
        rows = list(csv.DictReader(file))
    parts = both.uncertainty(Z)
    for k in (1, 2):
        found = [float(row[f"std_noise_{k}"]) for row in rows]
        np.testing.assert_allclose(found, np.sqrt(parts.noise[:, k - 1]), rtol=1e-9)


def test_the_page_shows_the_chosen_output_in_its_units():
    pytest.importorskip("bokeh")
    from wienerkernel.evaluation.explore.page import Page
    from wienerkernel.evaluation.explore.scenes import ModelScene

    single, both = twice()
    alone, page = Page(ModelScene(single)), Page(ModelScene(both))
    page.scene.shown.value = "1"
    for law, factor in (("the model's own", 1.0), ("Laplace", 1.5)):
        for shown in (alone, page):
            shown.scene.law.value, shown.scene.factor.value = law, factor
        curve, of_one = page.slices[0].curve.data, alone.slices[0].curve.data
        for name in ("mean", "estimate_low", "observation_high"):
            np.testing.assert_allclose(curve[name], 1000 * of_one[name], rtol=1e-5, atol=1e-3)
        ours, theirs = (shown.densities["observation"].data["pdf"] for shown in (page, alone))
        np.testing.assert_allclose(np.nanmax(ours), np.nanmax(theirs) / 1000, rtol=1e-4)


def test_a_function_of_data_alone_finds_the_scales():
    X, Y = samples()
    tuned = tune(Data(X, Y, np.ones(40)))
    np.testing.assert_allclose(tuned.output_scale[1] / tuned.output_scale[0], 1000.0, rtol=0.5)
