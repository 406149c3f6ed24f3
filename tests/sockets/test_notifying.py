"""Alerts on their way out: a webhook on loopback, programs that run, and a hub whose requests are told."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from console.audit import Audit
from console.hub import Hub
from console.notifying.alerts import Alert, trial
from console.notifying.keeper import Keeper
from console.notifying.posts import KEPT, NotTold, Post
from console.notifying.programs import Desktop, Hook
from console.notifying.rules import Channel, Quiet, Rules
from console.notifying.webhook import DELIVERY, SIGNATURE, TRIES, Webhook
from tests.sockets.cli_kit import Program, hosting, writes
from tests.sockets.host_kit import until
from watchfloor.connector import Target
from watchfloor.host.serving.server import wall_clock
from watchfloor.text import Clean

SECRET = "a secret of the receiver's"
NOW = 1_750_000_000_000


@dataclass
class Receiver:
    """A receiver of webhooks that answers as it is told: a status, or None for no answer at all."""

    answers: list[int | None] = field(default_factory=list)
    headers: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.got.append((headers, body))
            status = self.answers.pop(0) if self.answers else 200
            if status is None:
                await reader.read()  # until whoever waits for the answer gives up
                return
            writer.write(
                f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n{self.headers}\r\n".encode()
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving(*answers: int | None, headers: str = "") -> AsyncIterator[Receiver]:
    made = Receiver(list(answers), headers)
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield made
    finally:
        server.close()


class Pauses:
    """In place of sleeping: remembers for how long."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)


def _secret(folder: Path, text: str = SECRET) -> Path:
    file = folder / "hook.secret"
    file.write_text(f"{text}\n")
    file.chmod(0o600)
    return file


def _hook(url: str, secret: Path | None = None, *, pauses: Pauses | None = None, **rest: Any) -> Webhook:
    return Webhook(url, secret, lambda: NOW, sleep=pauses or Pauses(), **rest)


async def _told(way: Webhook, alert: Alert | None = None) -> str:
    """Why it was not told; "" where it was."""
    try:
        await way.tell(alert or trial(NOW))
    except NotTold as fault:
        return str(fault)
    finally:
        await way.close()
    return ""


# --- the webhook


async def test_an_alert_is_posted_as_json_and_signed(tmp_path: Path) -> None:
    async with receiving() as receiver:
        alert = trial(NOW)
        assert await _told(_hook(receiver.url, _secret(tmp_path)), alert) == ""
        ((headers, body),) = receiver.got
        assert json.loads(body) == alert.data()
        digest = hmac.new(SECRET.encode(), f"{NOW}.".encode() + body, sha256).hexdigest()
        assert headers[SIGNATURE.lower()] == f"t={NOW},v1={digest}"
        assert headers[DELIVERY.lower()] == alert.id


async def test_it_is_tried_again_with_growing_pauses_and_is_the_same_delivery() -> None:
    async with receiving(500, 503, 429) as receiver:
        pauses = Pauses()
        assert await _told(_hook(receiver.url, pauses=pauses)) == ""
        assert len(receiver.got) == 4
        assert len({(headers[DELIVERY.lower()], body) for headers, body in receiver.got}) == 1
        assert all(SIGNATURE.lower() not in headers for headers, _ in receiver.got)
        assert [0.5 <= pauses.asked[0] <= 1, 1 <= pauses.asked[1] <= 2, 2 <= pauses.asked[2] <= 4] == [True] * 3


async def test_it_waits_as_long_as_it_is_asked_to_but_not_for_ever() -> None:
    async with receiving(429, 503, headers="Retry-After: 30\r\n") as receiver:
        pauses = Pauses()
        assert await _told(_hook(receiver.url, pauses=pauses)) == ""
        assert pauses.asked == [30, 30]
    async with receiving(503, headers="Retry-After: 99999999\r\n") as receiver:
        pauses = Pauses()
        assert await _told(_hook(receiver.url, pauses=pauses)) == ""
        assert pauses.asked == [60]


async def test_after_the_last_try_it_is_given_up() -> None:
    async with receiving(*[500] * 10) as receiver:
        assert await _told(_hook(receiver.url)) == f"it answered 500, {TRIES} times"
        assert len(receiver.got) == TRIES


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 410])
async def test_what_will_not_become_better_is_not_tried_again(status: int) -> None:
    async with receiving(status, headers="Location: /elsewhere\r\n") as receiver:
        assert await _told(_hook(receiver.url)) == f"it answered {status}"
        assert len(receiver.got) == 1


async def test_a_server_that_does_not_answer_costs_no_more_than_its_time() -> None:
    async with receiving(None, None) as receiver:
        said = await _told(_hook(receiver.url, answers_in_s=0.1, tries=2))
        assert said == "no answer within 0.1 s, 2 times"
    assert await _told(_hook(receiver.url, tries=2)) == "it cannot be reached, 2 times"


@pytest.mark.parametrize("spoil", ["open", "short", "gone"])
async def test_without_its_secret_nothing_is_sent(tmp_path: Path, spoil: str) -> None:
    secret = _secret(tmp_path, "short" if spoil == "short" else SECRET)
    if spoil == "open":
        secret.chmod(0o644)
    if spoil == "gone":
        secret.unlink()
    async with receiving() as receiver:
        assert str(secret) in await _told(_hook(receiver.url, secret))
        assert receiver.got == []


async def test_while_one_alert_is_tried_no_more_than_a_few_wait_and_the_newest_are_kept() -> None:
    gate = asyncio.Event()

    async def held(seconds: float) -> None:
        await gate.wait()

    async with receiving(500) as receiver:
        moved: list[str] = []
        post = Post(Channel.WEBHOOK, Webhook(receiver.url, None, lambda: NOW, sleep=held), lambda: moved.append("x"))
        alerts = [trial(NOW + n) for n in range(100)]
        post.put(alerts[0])
        await until(lambda: receiver.got)
        for alert in alerts[1:]:
            post.put(alert)
        gate.set()
        await until(lambda: len(receiver.got) == 2 + KEPT)
        ids = [headers[DELIVERY.lower()] for headers, _ in receiver.got]
        assert ids == [alert.id for alert in (alerts[0], alerts[0], *alerts[-KEPT:])]
        await post.close()
        assert moved == []


async def test_a_fault_is_said_once_and_is_over_with_the_next_that_is_told() -> None:
    async with receiving(404, 404, 200) as receiver:
        said: list[str] = []
        post = Post(Channel.WEBHOOK, _hook(receiver.url), lambda: said.append(post.fault))
        for _ in range(3):
            post.put(trial(NOW))
        await until(lambda: len(said) == 2)
        assert said == ["it answered 404", ""]
        await post.close()


# --- programs


def _program(folder: Path, text: str, name: str = "page") -> Path:
    # The first line of a script takes no path with a blank in it, and the interpreter of these tests may have one.
    code = folder / f"{name}.py"
    code.write_text(text)
    file = folder / name
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{code}" "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


async def test_a_program_is_given_the_alert_and_no_token_and_no_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    program = _program(
        tmp_path,
        "import json, os, sys\n"
        "env = {k: v for k, v in os.environ.items() if k.startswith('WATCHFLOOR_')}\n"
        f"json.dump([sys.argv[1:], env, json.loads(sys.stdin.read())], open({str(out)!r}, 'w'))\n",
    )
    monkeypatch.setenv("WATCHFLOOR_TOKEN", "t0ken")
    alert = trial(NOW)._replace(text=Clean("1 agent waits: $(touch pwned); `touch pwned`"))
    await Hook([str(program), "$HOME; ls", "*"], hidden=["WATCHFLOOR_TOKEN"]).tell(alert)
    argv, env, given = json.loads(out.read_text())
    assert argv == ["$HOME; ls", "*"]
    assert given == alert.data()
    assert env["WATCHFLOOR_ALERT_TEXT"] == alert.text
    assert (env["WATCHFLOOR_ALERT_KIND"], env["WATCHFLOOR_ALERT_ID"]) == ("test", alert.id)
    assert "WATCHFLOOR_TOKEN" not in env


async def test_a_program_that_fails_hangs_or_is_not_there_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(NotTold, match="it ended with status 3"):
        await Hook([str(_program(tmp_path, "raise SystemExit(3)"))]).tell(trial(NOW))
    with pytest.raises(NotTold, match="it cannot be started: No such file"):
        await Hook([str(tmp_path / "none")]).tell(trial(NOW))
    pid = tmp_path / "pid"
    sleeper = "import subprocess, sys, time\n"
    sleeper += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    sleeper += f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
    sleeper += "time.sleep(600)"
    hook = Hook([str(_program(tmp_path, sleeper))], wait_s=60)
    telling = asyncio.create_task(hook.tell(trial(NOW)))
    await until(lambda: pid.exists() and pid.read_text())
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    child = int(pid.read_text())
    await until(lambda: not _lives(child))
    with pytest.raises(NotTold, match=r"it did not end within 0\.1 s"):
        await Hook([str(_program(tmp_path, "import time; time.sleep(600)"))], wait_s=0.1).tell(trial(NOW))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_the_desktop_is_handed_text_and_never_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "argv.json"
    _program(tmp_path, f"import json, sys\njson.dump(sys.argv[1:], open({str(out)!r}, 'w'))\n", "notify-send")
    monkeypatch.setenv("PATH", str(tmp_path))
    await Desktop().tell(trial(NOW)._replace(text=Clean('1 agent waits: <a href="x">--yes</a> & more')))
    words = json.loads(out.read_text())
    assert words[-3:] == ["--", "watchfloor", '1 agent waits: &lt;a href="x"&gt;--yes&lt;/a&gt; &amp; more']
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(NotTold, match="notify-send is not installed"):
        await Desktop().tell(trial(NOW))


# --- a hub and its requests


@asynccontextmanager
async def keeping(
    tmp_path: Path, rules: Rules, *, away: Callable[[], bool] = lambda: True, agents: int = 3, **rest: Any
) -> AsyncIterator[tuple[Hub, list[str], Keeper]]:
    """A hub on a host where agents ask, and what is written to the terminal (a bell is a bell)."""
    out: list[str] = []
    made: list[Keeper] = []
    async with hosting() as host:
        hub = Hub(
            clock=wall_clock,
            audit=Audit(tmp_path / "audit", clock=wall_clock),
            by="ann",
            read_only=True,
            on_changes=lambda changes: made[0].take(changes),
        )
        made.append(Keeper(hub, rules, wall_clock, ring=lambda: out.append("\a"), write=out.append, away=away, **rest))
        made[0].start()
        hub.start([Target(name="local", url=host.url, user="ann")])
        try:
            for n in range(agents):
                host.add(writes(tmp_path), name=f"agent-{n}", text="go")
            assert await hub.until(lambda: len(hub.fleet.queue.requests) == agents, 20.0)
            yield hub, out, made[0]
        finally:
            await made[0].close()
            await hub.close()


async def test_agents_that_ask_together_are_one_alert_of_each_channel(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        keeping(tmp_path, Rules(terminal="osc9", webhook=receiver.url), agents=20) as (hub, out, _),
    ):
        await until(lambda: receiver.got and out)
        assert len(out) == 1
        assert out[0].startswith("\x1b]9;watchfloor: 20 agents wait: agent-")
        assert out[0].endswith(", 15 more\a")
        assert len(receiver.got) == 1
        assert json.loads(receiver.got[0][1])["agents"] == 20
        assert hub.not_told == ""


async def test_a_channel_that_fails_stands_in_the_status_and_holds_up_no_other(tmp_path: Path) -> None:
    rules = Rules(terminal="osc777", command=(str(tmp_path / "none"),))
    async with keeping(tmp_path, rules) as (hub, out, _):
        await until(lambda: hub.not_told and out)
        assert hub.not_told == "not notified by command: it cannot be started: No such file or directory"
        assert out[0].startswith("\x1b]777;notify;watchfloor;3 agents wait: ")


async def test_what_nobody_answers_rings_and_a_demo_is_told_to_nobody_elsewhere(tmp_path: Path) -> None:
    rules = Rules(terminal="osc9", command=(str(tmp_path / "none"),), escalate_after_s=1)
    async with keeping(tmp_path, rules, away=lambda: False, beyond=False) as (hub, out, _):
        await until(lambda: len(out) == 2)
        assert out[0] == "\a"
        assert "3 agents wait, unanswered" in out[1]
        assert hub.not_told == ""


async def test_in_quiet_hours_nothing_is_told(tmp_path: Path) -> None:
    rules = Rules(terminal="osc9", escalate_after_s=1, quiet=Quiet(0, 24 * 60 - 1))
    async with keeping(tmp_path, rules) as (hub, out, keeper):
        heard = hub.steady()
        await until(lambda: hub.steady() - heard > 1_500)
        keeper.tick()
        assert out == [] or wall_clock() // 60_000 % (24 * 60) == 24 * 60 - 1


# --- doctor


def _logs(program: Program) -> list[str]:
    return [file.read_text() for file in Path(program.env["XDG_STATE_HOME"]).rglob("*.log")]


async def test_doctor_says_how_one_is_notified_and_tries_it(tmp_path: Path) -> None:
    program = Program(tmp_path)
    where = Path(program.env["XDG_CONFIG_HOME"]) / "watchfloor" / "config.toml"
    where.parent.mkdir(parents=True, exist_ok=True)

    async def found(*words: str) -> tuple[int, list[tuple[str, str]]]:
        done = await program("doctor", "--json", *words)
        lines = [json.loads(line) for line in done.out.splitlines()]
        return done.code, [(one["level"], one["text"]) for one in lines if one["area"] == "notify"]

    assert await found() == (0, [("ok", "by the bell alone; [notify] in the configuration names other ways")])
    secret = _secret(tmp_path)
    async with receiving() as receiver:
        where.write_text(
            f'[notify]\nterminal = "osc9"\ncommand = ["{tmp_path}/none"]\n'
            f'webhook = "{receiver.url}?key=s3cret"\nwebhook_secret_file = "{secret}"\n'
        )
        host = receiver.url.removesuffix("/hook")
        still = [
            ("ok", "terminal: osc9"),
            ("fault", f"command: {tmp_path}/none is not a program that can be run"),
            ("ok", f"webhook: {host}, signed"),
        ]
        assert await found() == (2, still)
        assert receiver.got == []
        code, told = await found("--notify")
        assert code == 2
        assert told == [
            *still,
            ("note", "bell: not tried: the output is not a terminal"),
            ("note", "terminal: not tried: the output is not a terminal"),
            ("fault", "command: it cannot be started: No such file or directory"),
            ("ok", "webhook: a test alert was told"),
        ]
        ((headers, body),) = receiver.got
        assert json.loads(body)["kind"] == "test"
        assert SIGNATURE.lower() in headers
    secret.chmod(0o644)
    assert any(level == "fault" and "others may read" in text for level, text in (await found())[1])
    assert not any("s3cret" in text for text in _logs(program))
