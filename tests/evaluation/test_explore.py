"""The page to explore: what its controls do to the model, what the server lets in, and the page in a browser."""

from __future__ import annotations

import asyncio
import http.client
import threading
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from browser import chromium, console_errors, overflow, requested_addresses, set_color_scheme, set_width
from scipy import stats

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.evaluation.explore import make_server, serve
from wienerkernel.evaluation.explore.scenes import LAWS, ModelScene, PaperScene
from wienerkernel.experiments.system import truth

__all__ = ["chromium"]

pytest.importorskip("bokeh")
HOSTILE = "<script>window.hacked = 1</script>\"'&amp;<img src=x onerror='window.hacked=1'>"


def _model(d=1, outputs=None, noise="gamma(0.25, scale=2)", n=20):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, d))
    shape = (n,) if outputs is None else (n, outputs)
    y = np.broadcast_to(np.sin(X[:, 0]).reshape(n, *[1] * (len(shape) - 1)), shape) + rng.gamma(
        0.25, 2.0, shape
    )
    return WienerKernelRegressor(2.0 * RBF(1.0), noise=noise, tuning=None).fit(X, y)


def _page(scene):
    from wienerkernel.evaluation.explore.page import Page

    return Page(scene)


@pytest.mark.parametrize("family", LAWS)
@pytest.mark.parametrize(("mean", "std"), [(0.5, 1.0), (-3.0, 1e-3)])
def test_laws_have_the_mean_and_variance_that_are_asked_for(family, mean, std):
    law = LAWS[family].law(std, mean=mean)
    assert law.mean() == pytest.approx(mean)
    assert law.std() == pytest.approx(std)


def test_gamma_law_of_the_example_is_that_of_the_paper():
    x = np.linspace(0.01, 4, 50)
    np.testing.assert_allclose(LAWS["gamma"].law(1.0, mean=0.5).pdf(x), stats.gamma(0.25, scale=2).pdf(x))


def test_more_repeats_keep_the_samples_that_were_there():
    scene = PaperScene()
    first = scene.values
    scene.repeats.value = 3
    scene.reset()
    assert len(scene.values) == 15
    np.testing.assert_allclose(scene.values.reshape(5, 3)[:, 0], first)


def test_noise_of_the_example_stays_above_the_truth():
    scene = PaperScene()
    assert np.all(scene.values >= truth(scene.points[:, 0]))


def _paper_model():
    return WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None)


def test_curve_is_that_of_the_model():
    page = _page(PaperScene())
    [part] = page.slices
    model = _paper_model().fit(np.array(part.data.data["x"])[:, None], part.data.data["y"])
    grid = np.array(part.curve.data["x"])[:, None]
    np.testing.assert_allclose(part.curve.data["mean"], model.predict(grid), atol=1e-9)
    for of in ("estimate", "function", "observation"):
        exact = model.predict_quantiles(grid, [0.05, 0.95], of=of)
        np.testing.assert_allclose(part.curve.data[f"{of}_low"], exact[:, 0], atol=1e-8)
        np.testing.assert_allclose(part.curve.data[f"{of}_high"], exact[:, 1], atol=1e-8)


def test_density_follows_x_and_the_text_tells_the_causes():
    page = _page(PaperScene())
    page.x[0].value = 2.0
    source = page.densities["observation"].data
    inside = np.isfinite(source["pdf"])
    model = _paper_model().fit(page.scene.points, page.scene.values)
    exact = model.predict_distribution([[2.0]], of="observation").pdf(np.array(source["y"])[inside][:, None])
    np.testing.assert_allclose(np.array(source["pdf"])[inside], exact[:, 0], atol=0.02)
    parts = model.uncertainty([[2.0]])
    for variance in (parts.noise, parts.model, parts.aleatoric):
        assert f"<b>{float(variance[0]) ** 0.5:.4g}</b>" in page.numbers.text


@pytest.mark.parametrize("family", LAWS)
def test_example_works_with_one_place_and_every_law(family):
    scene = PaperScene()
    scene.places.value, scene.law.value = 1, family
    scene.reset()
    page = _page(scene)
    assert np.all(np.isfinite(page.slices[0].curve.data["observation_high"]))


def test_own_model_is_shown_as_it_is_until_a_control_moves():
    model = _model()
    scene = ModelScene(model)
    assert scene.fit() is model.posterior_
    scene.factor.value = 2.0
    assert scene.fit().smoother.kernel == 2.0 * RBF(2.0)
    scene.law.value = "Laplace"
    noise = scene.fit().noise
    assert noise.mean() == pytest.approx(0.5)
    assert noise.var() == pytest.approx(1.0)


def _auto_model():
    X = np.linspace(0, 5, 40)[:, None]
    noise = 0.05 * np.exp(X[:, 0] / 2) * np.random.default_rng(2).normal(size=40)
    return WienerKernelRegressor(noise="auto").fit(X, np.exp(np.sin(X[:, 0]) + noise))


def test_a_model_keeps_its_level_trend_and_transformed_scale_when_a_control_moves():
    model = _auto_model()
    own, X = model.posterior_, np.linspace(0, 5, 40)[:, None]
    assert own.level is not None
    page = _page(ModelScene(model))
    assert "on the transformed scale (box-cox" in page.scene.introduction
    page.scene.law.value = "normal"
    assert page.posterior is not own
    np.testing.assert_allclose(page.posterior.mean(X), own.mean(X), rtol=1e-6)
    np.testing.assert_allclose(page.posterior.uncertainty(X).total, own.uncertainty(X).total, rtol=1e-6)


def _along(page, part, model, k=None):
    """Predictions of a model along a slice."""
    grid = np.tile(page.at, (81, 1))
    grid[:, part.j] = part.curve.data["x"]
    mean = model.predict(grid)
    return mean if k is None else mean[:, k]


def test_slices_of_several_inputs_go_through_one_point():
    model = _model(d=3, noise="norm(0, 1)")
    page = _page(ModelScene(model))
    assert [part.j for part in page.slices] == [0, 1, 2]
    for part in page.slices:
        np.testing.assert_allclose(part.curve.data["mean"], _along(page, part, model))
    before = page.slices[0].curve.data["mean"]
    page.x[1].value = 1.0
    assert page.at[1] == 1.0
    assert page.slices[1].span.location == 1.0
    assert not np.allclose(page.slices[0].curve.data["mean"], before)
    for part in page.slices:
        np.testing.assert_allclose(part.curve.data["mean"], _along(page, part, model))
    page.sample.value = 7
    np.testing.assert_array_equal(page.at, page.scene.points[7])


def test_samples_are_moved_to_the_slice_along_the_mean_and_stay_where_they_are_dragged():
    """The distance of a sample from the curve is its residual."""
    page = _page(ModelScene(_model(d=2, noise="norm(0, 1)")))
    part, scene = page.slices[0], page.scene

    def residuals():
        x, y, rows = (np.asarray(part.data.data[name]) for name in ("x", "y", "row"))
        mean = page.posterior.mean(part._path()(x))
        own = scene.values[rows] - page.posterior.mean(scene.points[rows])
        np.testing.assert_allclose(y - mean, own, atol=1e-9)
        return dict(zip(rows, zip(x, y, strict=True), strict=True))

    row, (x, y) = next(iter(residuals().items()))
    part.grasp(x, y)
    assert part.held == row
    for _ in range(8):  # the mean follows the sample
        part.drag(x + 0.1, y + 0.3)
    part.drop()
    np.testing.assert_allclose(residuals()[row], (x + 0.1, y + 0.3), atol=1e-2)


def test_a_category_is_chosen_and_never_between_its_values():
    rng = np.random.default_rng(0)
    kind = np.arange(24) % 3
    X = np.column_stack([np.eye(3)[kind], rng.uniform(0, 5, 24)])
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.2)", tuning=None).fit(X, np.sin(X[:, 3]) + kind)
    model.feature_names_in_ = np.array(["site=a", "site=b", "site=c", "depth"], dtype=object)
    page = _page(ModelScene(model))
    assert [part.j for part in page.slices] == [3]
    (select,) = page.values
    assert [label for _, label in select.options] == ["a", "b", "c"]
    before = page.at[:3].tolist()
    assert select.value == str(before.index(1.0))
    select.value = "0" if before[0] == 0 else "1"
    assert page.at[:3].tolist() == [float(k == int(select.value)) for k in range(3)]
    curve = page.slices[0].curve.data
    grid = np.column_stack([np.tile(page.at[:3], (len(curve["x"]), 1)), curve["x"]])
    np.testing.assert_allclose(curve["mean"], model.posterior_.mean(grid), rtol=1e-8, atol=1e-10)
    assert f"site = {'abc'[int(select.value)]}" in page.numbers.text
    page.sample.value = 5
    assert select.value == "2"
    page.slices[0].click(page.slices[0].plot.x_range.start + 0.1, 0.0)
    assert page.scene.points[-1, :3].tolist() == [0.0, 0.0, 1.0]


def test_every_output_can_be_shown():
    X = np.linspace(0, 5, 20)[:, None]
    y = np.column_stack([np.sin(X[:, 0]), 100 * np.cos(X[:, 0])])
    y += np.random.default_rng(0).normal(size=y.shape) * [0.1, 10.0]
    for model in (WienerKernelRegressor().fit(X, y), WienerKernelRegressor(noise="auto").fit(X, y)):
        page = _page(ModelScene(model))
        page.scene.shown.value = "1"
        assert page.scene.target == "y2"
        if model.noise != "auto":
            [part] = page.slices
            np.testing.assert_allclose(part.curve.data["mean"], _along(page, part, model, 1), rtol=1e-9)
            report = model.score_report()
            assert f"<b>{report.log_score[:, 1].mean():.3f}</b>" in page.scores.text


def test_discrete_noise_has_no_density_of_the_estimate():
    page = _page(ModelScene(_model(noise=[-0.5, 0.1, 0.4], n=3)))
    assert len(page.densities["estimate"].data["pdf"]) == 0
    assert len(page.densities["observation"].data["pdf"]) > 0


def test_scores_are_those_of_the_model_and_say_what_they_were():
    model = _model(noise="norm(0.5, 1)")
    page = _page(ModelScene(model))
    report = model.score_report()
    assert f"<b>{report.log_score.mean():.3f}</b>" in page.scores.text
    assert f"<b>{100 * report.coverage(0.9):.0f}\u00a0%</b>" in page.scores.text
    assert "first" not in page.scores.text
    page.scene.factor.value = 0.3
    assert f"(first {report.log_score.mean():.3f})" in page.scores.text


def test_samples_are_added_moved_and_removed():
    model = _model(d=2)
    page = _page(ModelScene(model))
    scene, part = page.scene, page.slices[1]
    X, y = scene.points, scene.values
    lowest = part.plot.y_range.start
    part.click(0.25, lowest + 0.01)
    assert len(scene.values) == 21
    np.testing.assert_allclose(scene.points[-1], [page.at[0], 0.25])
    row = int(part.data.data["row"][-1])
    assert row == 20
    part.grasp(0.25, lowest + 0.01)
    part.drag(-1.0, 0.5)
    part.drop()
    np.testing.assert_allclose(scene.points[-1], [page.at[0], -1.0])
    assert scene.values[-1] == 0.5
    refit = _model(d=2).partial_fit([scene.points[-1]], [0.5])
    np.testing.assert_allclose(part.curve.data["mean"], _along(page, part, refit), rtol=1e-9)
    part.click(-1.0, 0.5)
    np.testing.assert_array_equal(scene.points, X)
    np.testing.assert_array_equal(scene.values, y)


def test_a_click_beside_the_axes_and_a_drag_of_nothing_change_nothing():
    page = _page(PaperScene())
    [part] = page.slices
    before = page.scene.values
    part.click(0.0, part.plot.y_range.start - 1)
    part.grasp(part.plot.x_range.end, part.plot.y_range.start)
    part.drag(0.0, 0.0)
    part.drop()
    assert page.scene.values is before


def test_the_last_sample_stays_and_reset_brings_all_back():
    page = _page(PaperScene())
    [part] = page.slices
    for _ in range(7):
        part.click(part.data.data["x"][0], part.data.data["y"][0])
    assert len(page.scene.values) == 1
    page.start_over()
    assert len(page.scene.values) == 5


def test_samples_with_correlated_noise_stay_where_they_are():
    X = np.arange(4.0)[:, None]
    scale = np.eye(4) + 0.2 * np.eye(4, k=1)
    model = WienerKernelRegressor(RBF(1.0), tuning=None).fit(X, X[:, 0], noise_scale=scale)
    page = _page(ModelScene(model))
    assert "cannot be moved" in page.introduction.text
    page.tune()
    assert "Cannot retune" in page.scores.text


def test_retuning_is_a_new_fit_to_the_samples_as_they_are():
    page = _page(ModelScene(_model(noise="norm(0.5, 1)")))
    page.slices[0].click(0.1, 0.1)
    page.tune()
    scene = page.scene
    expected = WienerKernelRegressor(2.0 * RBF(1.0), noise="norm(0.5, 1)").fit(scene.points, scene.values)
    np.testing.assert_allclose(page.posterior.smoother.kernel.theta, expected.kernel_.theta)
    example = _page(PaperScene())
    example.tune()
    scene = example.scene
    expected = _paper_model().set_params(tuning="likelihood").fit(scene.points, scene.values)
    assert scene.scale.value == pytest.approx(np.clip(np.exp(expected.kernel_.theta[1]), 0.5, 10.0), rel=1e-6)


def _run(code):
    space = {}
    exec(code, space)  # noqa: S102
    return space["model"].posterior_


@pytest.mark.parametrize(
    "make",
    [
        _model,
        lambda: _model(d=2, noise="norm(0, 1)"),
        _auto_model,
        lambda: WienerKernelRegressor(noise=[-0.5, 0.1, 0.4], ridge=0.3, tuning=None).fit(
            np.arange(5.0)[:, None], np.arange(5.0), noise_scale=[1.0, 2.0, 1.0, 1.0, 0.5]
        ),
    ],
)
def test_the_code_makes_this_model(make, capsys):
    page = _page(ModelScene(make()))
    X = page.scene.points + 0.1
    for change in (
        lambda: None,
        lambda: setattr(page.scene.factor, "value", 1.5),
        lambda: page.slices[0].click(float(page.at[0]) + 0.2, page.slices[0].plot.y_range.start + 0.01),
    ):
        change()
        made = _run(page.scene.code())
        np.testing.assert_allclose(made.mean(X), page.posterior.mean(X), rtol=1e-6, atol=1e-8)
        parts, shown = made.common_uncertainty(X), page.posterior.common_uncertainty(X)
        np.testing.assert_allclose(parts.noise, shown.noise, rtol=1e-6)
        np.testing.assert_allclose(parts.aleatoric, shown.aleatoric, rtol=1e-6)
    assert "noise" in page.code.text
    assert capsys.readouterr().out


def test_curves_in_motion_have_the_right_mean_and_width_and_become_exact():
    page = _page(ModelScene(_model()))
    [part] = page.slices
    calls = []
    page.document = SimpleNamespace(
        add_next_tick_callback=calls.append,
        add_timeout_callback=lambda call, ms: calls.append(call),
        remove_timeout_callback=calls.remove,
    )
    page.scene.factor.value = 1.1
    page.scene.factor.value = 1.2
    [follow] = calls  # one for both
    calls.clear()
    follow()
    assert page.python.disabled
    moving = {name: np.array(values) for name, values in part.curve.data.items()}
    [settle] = calls
    settle()
    assert not page.python.disabled
    exact = part.curve.data
    np.testing.assert_array_equal(moving["mean"], exact["mean"])
    width = np.max(exact["observation_high"] - exact["observation_low"])
    for of in ("estimate", "function", "observation"):
        np.testing.assert_allclose(moving[f"{of}_high"], exact[f"{of}_high"], atol=0.05 * width)
    assert not np.array_equal(moving["observation_high"], exact["observation_high"])


def test_an_unfitted_model_cannot_be_explored():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        make_server(WienerKernelRegressor(tuning=None))


def test_models_that_cannot_be_explored_say_why():
    X = np.linspace(0, 5, 40)[:, None]
    approximate = WienerKernelRegressor(RBF(1.0), approximation="neighbors", tuning=None)
    bounded = WienerKernelRegressor(RBF(1.0), loss="absolute", tuning=None)
    for model, message in ((approximate, "exact model"), (bounded, "linear in y")):
        with pytest.raises(ValueError, match=message):
            make_server(model.fit(X, np.sin(X[:, 0])))


def _serving(model):
    """The address of a server in a thread of its own, and what stops it."""
    ready, box = threading.Event(), {}

    def work():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        box["server"] = server = make_server(model)
        server.start()
        ready.set()
        server.io_loop.start()
        server.io_loop.close(all_fds=True)

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(30)
    server = box["server"]

    def end():
        server.stop()
        server.io_loop.stop()

    def stop():
        server.io_loop.add_callback(end)
        thread.join(30)

    return f"http://127.0.0.1:{server.port}/", stop


@pytest.fixture(scope="module")
def example():
    address, stop = _serving(None)
    yield address
    stop()


@pytest.fixture(scope="module")
def own():
    model = _model(d=2, noise="norm(0, 1)")
    model.feature_names_in_ = np.array([HOSTILE, "b"], dtype=object)
    address, stop = _serving(model)
    yield address
    stop()


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:{port}", 101),
        ("http://localhost:{port}", 101),
        ("http://127.0.0.1:1", 403),
        ("http://example.org", 403),
        ("http://example.org:{port}", 403),
    ],
)
def test_pages_of_others_cannot_talk_to_the_server(example, origin, status):
    from bokeh.util.token import generate_jwt_token, generate_session_id

    port, token = urlsplit(example).port, generate_jwt_token(generate_session_id())
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": f"bokeh, {token}",
        "Origin": origin.format(port=port),
    }
    connection.request("GET", "/ws", headers=headers)
    assert connection.getresponse().status == status
    connection.close()


def test_server_listens_on_this_machine_alone():
    server = make_server()
    try:
        sockets = server._http._sockets.values()
        assert {socket.getsockname()[0] for socket in sockets} == {"127.0.0.1"}
    finally:
        server.start()
        server.stop()


def test_serve_tells_the_address_and_ends_with_an_interrupt(capsys, monkeypatch):
    from tornado.ioloop import IOLoop

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("tornado.platform.asyncio.BaseAsyncIOLoop.start", interrupted)
    loop = IOLoop(make_current=True)
    try:
        serve(open_browser=False)
    finally:
        loop.close(all_fds=True)
    assert "http://127.0.0.1:" in capsys.readouterr().out


IDLE = "return !!(window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle)"
HANDLE = """
const model = Bokeh.documents[0].get_model_by_name(arguments[0]);
return Bokeh.index.find_one_by_id(model.id).el.shadowRoot.querySelector('.noUi-handle');
"""
TEXT = "return Bokeh.documents[0].get_model_by_name('numbers').text"
SCORES = "return Bokeh.documents[0].get_model_by_name('scores').text"
BACKGROUND = "return Bokeh.documents[0].get_model_by_name('slice0').background_fill_color"
SHOWN = """
const model = Bokeh.documents[0].get_model_by_name(arguments[0]);
return Bokeh.index.find_one(model).el.shadowRoot.textContent;
"""
CLICK = """
const model = Bokeh.documents[0].get_model_by_name(arguments[0]);
Bokeh.index.find_one(model).el.shadowRoot.querySelector("button").click();
"""


def _wait(page, script, *arguments, until=bool):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 30).until(lambda driver: until(driver.execute_script(script, *arguments)))


def _open(page, address):
    console_errors(page), requested_addresses(page)
    page.get(address)
    _wait(page, IDLE)


def _picture(page, name):
    return page.find_elements("css selector", ".figures > div")[
        ("slice0", "density").index(name)
    ].screenshot_as_base64


def test_page_opens_without_complaint_and_asks_nobody_else(chromium, example):
    set_width(chromium, 1280)
    _open(chromium, example)
    assert console_errors(chromium) == []
    asked = [urlsplit(address).hostname for address in requested_addresses(chromium)]
    assert set(asked) == {"127.0.0.1"}


def test_moving_x_changes_the_densities(chromium, example):
    set_width(chromium, 1280)
    _open(chromium, example)
    words, picture = chromium.execute_script(TEXT), _picture(chromium, "density")
    chromium.execute_script(HANDLE, "x0").send_keys("\ue014" * 20)  # right arrow
    _wait(chromium, TEXT, until=lambda text: "x = 1 " in text)
    assert words != chromium.execute_script(TEXT)
    assert _picture(chromium, "density") != picture


def test_curves_follow_a_slider_while_it_is_dragged(chromium, example):
    from selenium.webdriver import ActionChains

    set_width(chromium, 1280)
    _open(chromium, example)
    words, picture = chromium.execute_script(TEXT), _picture(chromium, "slice0")
    handle = chromium.execute_script(HANDLE, "control4")
    ActionChains(chromium).click_and_hold(handle).move_by_offset(-60, 0).perform()
    _wait(chromium, TEXT, until=lambda text: text != words)
    assert _picture(chromium, "slice0") != picture
    ActionChains(chromium).release().perform()
    words = chromium.execute_script(TEXT)
    chromium.execute_script("Bokeh.documents[0].get_model_by_name('control2').value = 'Laplace'")
    _wait(chromium, TEXT, until=lambda text: text != words)


NUMBER = """
const plot = Bokeh.documents[0].get_model_by_name("slice0");
return plot.renderers.find((one) => one.name === "text").data_source.data.x.length;
"""
POSITION = """
const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name("slice0"));
const data = view.model.renderers.find((one) => one.name === "text").data_source.data, k = arguments[0];
const box = view.el.getBoundingClientRect(), frame = view.frame;
return [
  box.left + frame.x_scale.compute(data.x[k]) + arguments[1], box.top + frame.y_scale.compute(data.y[k]) + arguments[2],
].map(Math.round);
"""


def test_samples_are_clicked_and_dragged(chromium, own):
    from selenium.webdriver import ActionChains

    set_width(chromium, 1280)
    _open(chromium, own)
    number = chromium.execute_script(NUMBER)
    chromium.execute_script("document.querySelector('.figures').scrollIntoView()")

    def act(name, *offset):
        chain = ActionChains(chromium)
        x, y = chromium.execute_script(POSITION, 0, *offset)
        chain.w3c_actions.pointer_action.move_to_location(x, y)
        getattr(chain, name)()
        return chain

    act("click", 30, -60).perform()
    _wait(chromium, NUMBER, until=lambda now: now == number + 1)
    position = chromium.execute_script(POSITION, 0, 0, 0)
    words = chromium.execute_script(SCORES)
    act("click_and_hold", 0, 0).move_by_offset(0, 20).move_by_offset(0, 20).release().perform()
    _wait(chromium, SCORES, until=lambda now: now != words)
    moved = chromium.execute_script(POSITION, 0, 0, 0)
    assert abs(moved[0] - position[0]) <= 2
    act("click", 0, 0).perform()
    _wait(chromium, NUMBER, until=lambda now: now == number)
    assert console_errors(chromium) == []


def test_figures_and_code_can_be_saved(chromium, own):
    set_width(chromium, 1280)
    _open(chromium, own)
    chromium.execute_script(
        "HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href]; }"
    )
    for name, file, start in [
        ("png", "wienerkernel.png", "data:image/png;base64,iVBOR"),
        ("python", "model.py", "data:text/x-python"),
    ]:
        chromium.execute_script(CLICK, name)
        _wait(chromium, "return window.saved && window.saved[0] === arguments[0]", file)
        saved = chromium.execute_script("return window.saved[1]")
        assert saved.startswith(start)
        assert len(saved) > 1000
    assert "model = WienerKernelRegressor(Constant(value=2.0)" in unquote(saved)
    assert console_errors(chromium) == []


def test_theme_follows_the_system_and_the_button(chromium, example):
    def color():
        return chromium.execute_script(
            "return Bokeh.documents[0].get_model_by_name('slice0').background_fill_color"
        )

    set_width(chromium, 1280)
    set_color_scheme(chromium, "dark")
    try:
        _open(chromium, example)
        _wait(chromium, BACKGROUND, until=lambda now: now == color() == "#14171c")
        chromium.execute_script(CLICK, "dark")
        _wait(chromium, BACKGROUND, until=lambda now: now == color() == "#ffffff")
        page = chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert page == "rgb(255, 255, 255)"
    finally:
        set_color_scheme(chromium, "light")


@pytest.mark.parametrize("width", [1280, 390])
def test_page_is_never_wider_than_the_screen(chromium, example, own, width):
    set_width(chromium, width)
    for address in (example, own):
        _open(chromium, address)
        assert overflow(chromium) == 0
        figures = chromium.find_elements("css selector", ".figures > div")
        beside = figures[0].location["y"] == figures[1].location["y"]
        assert beside == (width == 1280)


def test_names_of_inputs_stay_text(chromium, own):
    set_width(chromium, 1280)
    _open(chromium, own)
    assert chromium.execute_script("return window.hacked") is None
    assert HOSTILE in chromium.execute_script(SHOWN, "numbers")
    assert console_errors(chromium) == []


def test_a_mean_that_is_zero_up_to_rounding_is_shown_as_zero():
    X = np.linspace(0, 6, 20)[:, None]
    noise = f"norm({2.0**-55!r}, 0.1)"
    model = WienerKernelRegressor(RBF(1.0), noise=noise, tuning=None).fit(X, np.sin(X[:, 0]))
    assert 0 < abs(model.noise_.mean()) < 1e-12
    assert "the same mean, 0, and" in ModelScene(model).introduction


def test_axes_of_a_transformed_output_say_so():
    X = np.linspace(0, 6, 20)[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", transform="log", tuning=None)
    assert ModelScene(model.fit(X, np.exp(np.sin(X[:, 0])))).target == "y, transformed"
