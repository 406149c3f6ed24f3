"""`watchfloor web`: the console in a browser on this machine, one process for each tab.

Whoever reaches a page of it is an operator. So it listens on loopback alone, every address holds a token that nobody
can guess, and what a browser sends on behalf of another site is refused: it names a foreign host, or a foreign origin.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import shlex
import signal
import socket
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from console.cli import logs, out
from console.cli.exits import OK, USAGE, Fail
from watchfloor.errors import AddressInUse
from watchfloor.text import clean_line

if TYPE_CHECKING:
    from aiohttp import web as aiohttp_web

_PAGE: Final = Path(__file__).with_name("page")
_MOST: Final = 4
"""Consoles that may be open at once; each is a process of its own."""
_TOKEN_BYTES: Final = 24
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self' {sockets}; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def web(args: Namespace) -> int:
    """Serve until Ctrl-C. Raises AddressInUse, and Fail where the extra is missing or the address is not of this
    machine."""
    host, port = args.serve
    if not _loopback(host):
        raise Fail("web listens on this machine only, as on 127.0.0.1; from another one use ssh -L", USAGE)
    try:
        import aiohttp
        import textual_serve
    except ImportError:
        raise Fail("web needs an extra: pip install 'watchfloor-console[web]'", USAGE) from None
    del aiohttp, textual_serve
    logs.keep()
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise AddressInUse(f"{host}:{port}: {error.strerror or error}") from None
    with listening:
        return asyncio.run(_serve(listening, command(args)))


def command(args: Namespace) -> list[str]:
    """The program that draws one console."""
    words = [sys.executable, "-m", "console.cli.main", "--browser"]
    if args.read_only:
        words.append("--read-only")
    if args.demo:
        return [*words, "demo"]
    return [*words, "connect", *args.urls] if args.urls else words


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(listening: socket.socket, words: list[str]) -> int:
    from aiohttp import web as aiohttp_web

    address, port = listening.getsockname()[:2]
    door = Door(f"[{address}]:{port}" if ":" in address else f"{address}:{port}", port)
    runner = aiohttp_web.AppRunner(application(door, words), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await aiohttp_web.SockSite(runner, listening).start()
        out.line(clean_line(f"open {door.url} in a browser on this machine; Ctrl-C ends it"))
        await _asked_to_end()
    finally:
        await runner.cleanup()
    return OK


async def _asked_to_end() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


class Door:
    """Who is let in: `place` is the host and port that a browser must name, `token` the first part of every path."""

    def __init__(self, place: str, port: int, token: str | None = None) -> None:
        self.place: Final = place
        self.token: Final = token or secrets.token_urlsafe(_TOKEN_BYTES)
        self.places: Final = frozenset({place, f"localhost:{port}"})

    @property
    def url(self) -> str:
        return f"http://{self.place}/{self.token}/"

    def refuses(self, host: str | None, origin: str | None, path: str, *, upgrades: bool) -> tuple[int, str] | None:
        """The status and the reason with which a request is refused; None where it may come in. `origin` None: the
        browser sent none, which for a WebSocket no browser does."""
        if host not in self.places:
            return 403, "this host is not served here"
        if origin is None and upgrades:
            return 403, "a browser names where it comes from"
        if origin is not None and origin != f"http://{host}":
            return 403, "another site may not speak to this one"
        given = path.lstrip("/").partition("/")[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 404, "nothing is here"
        return None


def application(door: Door, words: list[str]) -> aiohttp_web.Application:
    """The pages and the WebSocket, behind the door. `words`: the program that draws a console."""
    import aiohttp_jinja2
    import jinja2
    from aiohttp import web as aiohttp_web
    from textual_serve.server import Server

    class Consoles(Server):
        """The toolkit's own server, with our page and no other doors than those below."""

        open_now = 0

        async def visit(self, request: aiohttp_web.Request) -> aiohttp_web.StreamResponse:
            if self.open_now >= _MOST:
                raise aiohttp_web.HTTPServiceUnavailable(text=f"{_MOST} consoles are open already: close one first")
            self.open_now += 1
            try:
                visited: aiohttp_web.StreamResponse = await self.handle_websocket(request)
                return visited
            finally:
                self.open_now -= 1

    consoles = Consoles(shlex.join(words), title="watchfloor", public_url=f"http://{door.place}")

    async def page(request: aiohttp_web.Request) -> aiohttp_web.StreamResponse:
        context = {
            "application": {"name": "watchfloor"},
            "config": {"static": {"url": f"/{door.token}/static/"}},
            "app_websocket_url": f"ws://{request.host}/{door.token}/ws",
            "font_size": 15,
        }
        return aiohttp_jinja2.render_template("app_index.html", request, context)

    Handler = Callable[[aiohttp_web.Request], Awaitable[aiohttp_web.StreamResponse]]

    @aiohttp_web.middleware
    async def guard(request: aiohttp_web.Request, handler: Handler) -> aiohttp_web.StreamResponse:
        headers = request.headers
        upgrades = headers.get("Upgrade", "").lower() == "websocket"
        refused = door.refuses(headers.get("Host"), headers.get("Origin"), request.path, upgrades=upgrades)
        if refused is not None:
            return aiohttp_web.Response(status=refused[0], text=refused[1], headers=_headers(door))
        return await handler(request)

    async def mark(request: aiohttp_web.Request, response: aiohttp_web.StreamResponse) -> None:
        if not isinstance(response, aiohttp_web.WebSocketResponse):
            response.headers.update(_headers(door))

    app = aiohttp_web.Application(middlewares=[guard])
    aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(_PAGE), autoescape=True)
    app.add_routes(
        [
            aiohttp_web.get(f"/{door.token}/", page),
            aiohttp_web.get(f"/{door.token}/ws", consoles.visit),
            aiohttp_web.static(f"/{door.token}/static", consoles.statics_path),
        ]
    )
    app.on_response_prepare.append(mark)
    return app


def _headers(door: Door) -> dict[str, Any]:
    sockets = " ".join(f"ws://{place}" for place in sorted(door.places))
    return {name: value.replace("{sockets}", sockets) for name, value in _HEADERS.items()}
