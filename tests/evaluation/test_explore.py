"""The page to explore: what its controls do to the model, what the server lets in, and the page in a browser."""

from __future__ import annotations

import asyncio
import http.client
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest
from browser import chromium, console_errors, overflow, requested_addresses, set_width
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
    first = scene.fit().smoother
    scene.repeats.value = 3
    more = scene.fit().smoother
    assert len(more.targets) == 15
    np.testing.assert_allclose(more.targets.reshape(5, 3)[:, 0], first.targets[:, 0])


def test_noise_of_the_example_stays_above_the_truth():
    smoother = PaperScene().fit().smoother
    assert np.all(smoother.targets[:, 0] + 0.5 >= truth(smoother.places[:, 0]))


def test_curve_is_that_of_the_model():
    page = _page(PaperScene())
    model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None)
    x, y = np.array(page.data.data["x"]), np.array(page.data.data["y"])
    model.fit(x[:, None], y)
    grid = np.array(page.curve.data["x"])[:, None]
    np.testing.assert_allclose(page.curve.data["mean"], model.predict(grid), atol=1e-9)
    for of in ("estimate", "function", "observation"):
        exact = model.predict_quantiles(grid, [0.05, 0.95], of=of)
        np.testing.assert_allclose(page.curve.data[f"{of}_low"], exact[:, 0], atol=1e-8)
        np.testing.assert_allclose(page.curve.data[f"{of}_high"], exact[:, 1], atol=1e-8)


def test_density_follows_x_and_the_text_tells_the_causes():
    page = _page(PaperScene())
    page.x.value = 2.0
    page.choose()
    source = page.densities["observation"].data
    inside = np.isfinite(source["pdf"])
    model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None)
    model.fit(np.array(page.data.data["x"])[:, None], page.data.data["y"])
    exact = model.predict_distribution([[2.0]], of="observation").pdf(np.array(source["y"])[inside][:, None])
    np.testing.assert_allclose(np.array(source["pdf"])[inside], exact[:, 0], atol=0.02)
    parts = model.uncertainty([[2.0]])
    for variance in (parts.noise, parts.model, parts.aleatoric):
        assert f"<b>{float(variance[0]) ** 0.5:.4g}</b>" in page.text.text


@pytest.mark.parametrize("family", LAWS)
def test_example_works_with_one_place_and_every_law(family):
    scene = PaperScene()
    scene.places.value, scene.law.value = 1, family
    page = _page(scene)
    assert np.all(np.isfinite(page.curve.data["observation_high"]))


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


def test_a_model_keeps_its_level_trend_and_transformed_scale_when_a_control_moves():
    X = np.linspace(0, 5, 40)[:, None]
    noise = 0.05 * np.exp(X[:, 0] / 2) * np.random.default_rng(2).normal(size=40)
    model = WienerKernelRegressor(noise="auto").fit(X, np.exp(np.sin(X[:, 0]) + noise))
    own = model.posterior_
    assert own.level is not None
    page = _page(ModelScene(model))
    assert "on the transformed scale (box-cox" in page.scene.introduction
    page.scene.law.value = "normal"
    page.refit()
    assert page.posterior is not own
    np.testing.assert_allclose(page.posterior.mean(X), own.mean(X), rtol=1e-6)
    np.testing.assert_allclose(page.posterior.uncertainty(X).total, own.uncertainty(X).total, rtol=1e-6)


def test_input_and_output_can_be_chosen():
    model = _model(d=2, outputs=2, noise="norm(0, 1)")
    page = _page(ModelScene(model))
    scene = page.scene
    assert len(scene.controls) == 4
    scene.input.value, scene.shown.value = "1", "1"
    page.refit()
    grid = np.tile(page.points[0], (81, 1))
    grid[:, 1] = page.curve.data["x"]
    np.testing.assert_allclose(page.curve.data["mean"], model.predict(grid)[:, 1])


def test_discrete_noise_has_no_density_of_the_estimate():
    page = _page(ModelScene(_model(noise=[-0.5, 0.1, 0.4], n=3)))
    assert len(page.densities["estimate"].data["pdf"]) == 0
    assert len(page.densities["observation"].data["pdf"]) > 0


def test_an_unfitted_model_cannot_be_explored():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        make_server(WienerKernelRegressor(tuning=None))


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
TEXT = "return Bokeh.documents[0].get_model_by_name('text').text"


def _wait(page, script, *arguments, until=bool):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 30).until(lambda driver: until(driver.execute_script(script, *arguments)))


def _open(page, address):
    console_errors(page), requested_addresses(page)
    page.get(address)
    _wait(page, IDLE)


def _picture(page, name):
    return page.find_elements("css selector", ".figures > div")[
        ("tubes", "density").index(name)
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
    chromium.execute_script(HANDLE, "x").send_keys("\ue014" * 20)  # right arrow
    _wait(chromium, TEXT, until=lambda text: "x = 1 " in text)
    assert words != chromium.execute_script(TEXT)
    assert _picture(chromium, "density") != picture


def test_moving_a_control_changes_the_curve(chromium, example):
    set_width(chromium, 1280)
    _open(chromium, example)
    words, picture = chromium.execute_script(TEXT), _picture(chromium, "tubes")
    chromium.execute_script(HANDLE, "control1").send_keys("\ue014")  # one repeat more
    _wait(chromium, TEXT, until=lambda text: text != words)
    assert _picture(chromium, "tubes") != picture
    words = chromium.execute_script(TEXT)
    chromium.execute_script("Bokeh.documents[0].get_model_by_name('control3').value = 'Laplace'")
    _wait(chromium, TEXT, until=lambda text: text != words)


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
    assert HOSTILE in chromium.find_element("css selector", "main p").text
    assert console_errors(chromium) == []
