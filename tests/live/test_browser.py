"""The console in a real browser: headless Chromium, driven by its own debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.sockets.cli_kit import Program

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next((found for name in NAMES if (found := shutil.which(name))), None)
PATIENCE_S: Final = 120.0

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")
pytestmark = [pytest.mark.live, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]


class Tab:
    """One page of the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.asked_for: list[str] = []
        """Every address that the page has asked for."""
        self.complaints: list[str] = []

    async def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; notes what happens meanwhile."""
        id = next(self._ids)
        await self._socket.send(json.dumps({"id": id, "method": method, "params": params}))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = json.loads(await self._socket.recv())
                if message.get("id") == id:
                    assert "error" not in message, message
                    result: dict[str, Any] = message["result"]
                    return result
                self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.asked_for.append(params["request"]["url"])
            case "Network.webSocketCreated":
                self.asked_for.append(params["url"])
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))

    async def value(self, expression: str) -> Any:
        return (await self.do("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def until(self, expression: str, before: Callable[[], Any] | None = None, every_s: float = 0.2) -> None:
        """Wait until the page says so; `before` is done before each look."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.value(expression):
                if before is not None:
                    await before()
                await asyncio.sleep(every_s)

    async def press(self, key: str) -> None:
        await self.do("Input.dispatchKeyEvent", type="keyDown", key=key, text=key, unmodifiedText=key)
        await self.do("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self) -> bytes:
        return base64.b64decode((await self.do("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def browsing(folder: Path) -> AsyncIterator[Tab]:
    """A tab of a browser of its own, whose profile lies in the folder."""
    assert BROWSER is not None
    process = await asyncio.create_subprocess_exec(
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--enable-unsafe-swiftshader",  # draws without a graphics card
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--window-size=1280,800",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while not (found := re.search(rb"ws://([\w.:]+)/", await process.stderr.readline())):
                assert process.returncode is None
        base = f"ws://{found[1].decode()}"
        async with _page(base) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Network", "Log", "Runtime"):
                await tab.do(f"{domain}.enable")
            yield tab
    finally:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _page(base: str) -> AsyncIterator[ClientConnection]:
    async with httpx.AsyncClient(trust_env=False) as client:
        pages = (await client.get(f"{base.replace('ws', 'http', 1)}/json/list")).json()
    address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
    async with connect(address, max_size=None, proxy=None) as socket:
        yield socket


async def test_the_console_is_drawn_in_a_browser_takes_keys_and_ends(tmp_path: Path) -> None:
    program = Program(tmp_path)
    async with program.running("web", "--demo") as process:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode()
        url = line.split()[1]
        async with browsing(tmp_path / "profile") as tab:
            await tab.do("Page.navigate", url=url)
            await tab.until("document.body.classList.contains('-first-byte')")
            begun = await tab.picture()
            assert begun.startswith(b"\x89PNG")
            await tab.value("document.querySelector('.xterm-helper-textarea').focus()")
            await tab.press("q")
            await tab.until("document.body.classList.contains('-closed')", lambda: tab.press("y"), 1.5)
        place = url.split("/")[2]
        assert {address.split("/")[2] for address in tab.asked_for if not address.startswith("data:")} == {place}
        assert tab.complaints == []
