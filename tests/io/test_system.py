"""Saved systems: simulations of what is loaded equal those of what was saved, and a changed file is an error."""

import json
import zipfile

import numpy as np
import pytest

import wienerkernel
from wienerkernel import RBF, Dynamics, FormatError, WienerKernelRegressor


def driven(**options):
    """Two states and an input, with a model each."""
    rng = np.random.default_rng(0)
    X, U = np.zeros((40, 2)), rng.uniform(-1, 1, (40, 1))
    for k in range(39):
        x, v = X[k]
        X[k + 1] = x + 0.3 * v, 0.8 * v + 0.4 * U[k, 0] + 0.05 * rng.standard_normal()
    model = WienerKernelRegressor(2.0 * RBF(3.0), noise="gamma(2, scale=0.02)", tuning=None)
    return Dynamics.from_trajectories(X, U, model=model, horizon=4, **options)


def several_outputs(process_noise):
    rng = np.random.default_rng(1)
    Z = rng.uniform(-1, 1, (20, 2))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(Z, 0.5 * Z)
    return Dynamics(model, process_noise=process_noise, state_names=["a", "b"])


def positive():
    x = np.exp(np.sin(0.7 * np.arange(40)) + 0.1 * np.random.default_rng(2).standard_normal(40))
    return Dynamics.from_trajectories(x, lags=2, model=WienerKernelRegressor(transform="box-cox"), horizon=3)


SYSTEMS = {
    "a model for each state": driven,
    "increments, lags": lambda: driven(
        learns="increment", lags=(2, 3), state_names=["p", "v"], input_names=["force"]
    ),
    "no process noise": lambda: several_outputs(False),
    "another process noise": lambda: several_outputs(["gamma(2)", "norm(0, 0.3)"]),
    "transformed": positive,
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_loaded_system_is_the_saved_one(name, tmp_path):
    system = SYSTEMS[name]()
    system.save(tmp_path / "system.wk")
    loaded = Dynamics.load(tmp_path / "system.wk")
    for key in (
        "learns",
        "lags",
        "lags_transformed",
        "n_states",
        "n_inputs",
        "state_names",
        "input_names",
        "horizon",
    ):
        assert getattr(loaded, key) == getattr(system, key)
    if system.origin is None:
        runs = [one.rollout([0.2, 0.1], steps=3, n_paths=5, random_state=0) for one in (system, loaded)]
    else:
        runs = [one.forecast(n_paths=5, random_state=0) for one in (system, loaded)]
        for ours, theirs in zip(system.origin, loaded.origin, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(runs[0].states, runs[1].states)
    np.testing.assert_array_equal(runs[0].causes.total, runs[1].causes.total)


def test_a_model_is_not_a_system_and_a_system_is_not_a_model(tmp_path):
    system = driven()
    system.save(tmp_path / "system.wk")
    system.models[0].save(tmp_path / "model.wk")
    with pytest.raises(FormatError, match=r"dynamic system: read it with Dynamics\.load"):
        wienerkernel.load(tmp_path / "system.wk")
    with pytest.raises(FormatError, match="not a dynamic system"):
        Dynamics.load(tmp_path / "model.wk")


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("learns", "rate", "expected one of"),
        ("lags", [2, 1], "fitted to 3"),
        ("lags", [1], "lags must be"),
        ("lags", 1, "lags: must be a list"),
        ("lags_transformed", 1, "expected one of"),
        ("state_names", ["a"], "must have 2 names"),
        ("state_names", [1, 2], "state_names: cannot be"),
        ("input_names", ["a", "b"], "must have 1 names"),
        ("input_names", "u", "input_names: must be a list"),
        ("horizon", 0, "expected an integer"),
        ("origin_states", [], "origin_states: expected"),
        ("models", [], "empty list"),
        ("models", [1], "models: cannot be"),
        ("process_noise", 3, "process_noise: must be a list"),
        ("more", 3, "expected the entries"),
    ],
)
def test_a_changed_file_is_refused(tmp_path, entry, value, message):
    path, changed = tmp_path / "system.wk", tmp_path / "changed.wk"
    driven().save(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "model.json":
                tree = json.loads(content)
                tree[entry] = value
                content = json.dumps(tree)
            new.writestr(zipfile.ZipInfo(name), content)
    with pytest.raises(FormatError, match=message):
        Dynamics.load(changed)
