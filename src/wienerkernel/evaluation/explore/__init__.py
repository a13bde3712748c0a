"""An interactive page on this machine: change the noise law and the length scale, and see the predictions change.

Needs Bokeh. The server listens on 127.0.0.1 only, and the page loads nothing from elsewhere.
"""

from __future__ import annotations

import webbrowser
from typing import Any

from ...scale import ApproximatePosterior
from ..report import single_models

__all__ = ["make_server", "serve"]

ADDRESS = "127.0.0.1"


def make_server(model: Any = None, *, port: int = 0) -> Any:
    """A Bokeh server of the page on the current event loop, listening but not yet started.

    Without a model it shows the paper's example; port 0 takes a free one, see ``server.port``.
    """
    try:
        from bokeh.application import Application
        from bokeh.application.handlers.function import FunctionHandler
        from bokeh.server.server import BaseServer
        from bokeh.server.tornado import BokehTornado
        from bokeh.server.util import bind_sockets
        from tornado.httpserver import HTTPServer
        from tornado.ioloop import IOLoop
    except ImportError as error:
        raise ImportError("explore needs Bokeh: pip install 'wienerkernel[explore]'") from error
    from .page import Page
    from .scenes import ModelScene, PaperScene

    if model is not None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
        posteriors = [one.posterior_ for one in single_models(model)]
        for posterior in posteriors:
            posterior.smoother  # noqa: B018 - raises if the estimate is not linear in y
        if any(isinstance(posterior, ApproximatePosterior) for posterior in posteriors):
            raise ValueError(
                "explore needs an exact model, this one is approximate: fit with approximation=None"
            )

    def build(document: Any) -> None:
        Page(PaperScene() if model is None else ModelScene(model)).show(document)

    sockets, port = bind_sockets(ADDRESS, port)
    origins = [f"{ADDRESS}:{port}", f"localhost:{port}"]
    tornado = BokehTornado({"/": Application(FunctionHandler(build))}, extra_websocket_origins=origins)
    http = HTTPServer(tornado)
    http.add_sockets(sockets)
    return BaseServer(IOLoop.current(), tornado, http)


def serve(model: Any = None, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the page of `make_server` until interrupted by Ctrl-C."""
    server = make_server(model, port=port)
    address = f"http://{ADDRESS}:{server.port}/"
    print(f"Explore at {address} (press Ctrl-C to stop)", flush=True)
    server.start()
    if open_browser:
        server.io_loop.add_callback(webbrowser.open, address)
    try:
        server.io_loop.start()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
