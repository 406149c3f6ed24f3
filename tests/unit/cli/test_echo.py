"""What a program prints reaches whoever reads it, however slowly."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from console.cli.echo import Echo

PATIENCE_S = 60.0
FULL = 1 << 20


@contextmanager
def _stdout(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """A pipe in the place of standard output: its reading and its writing end."""
    reading, writing = os.pipe()
    with open(writing, "w", closefd=False) as stream:
        monkeypatch.setattr("sys.stdout", stream)
        yield reading, writing


def _read(handle: int, count: int) -> bytes:
    found = b""
    while len(found) < count and (data := os.read(handle, 1 << 16)):
        found += data
    return found


def test_it_waits_for_as_long_as_somebody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    with _stdout(monkeypatch) as (reading, _):
        echo = Echo()
        echo("stdout", b"x" * FULL)
        echo.close(0.05)
        closing = threading.Thread(target=echo.close)
        closing.start()
        closing.join(0.2)
        assert closing.is_alive(), "nobody has read it yet"
        assert _read(reading, FULL) == b"x" * FULL
        closing.join(PATIENCE_S)
        assert not closing.is_alive()


def test_what_was_left_unwritten_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with _stdout(monkeypatch) as (reading, _):
        echo = Echo()
        echo("stdout", b"x" * FULL)
        echo.close(0.05)
        assert capsys.readouterr().err == f"watchfloor: {FULL} bytes of output were not written: nobody read them\n"
        os.close(reading)


def test_a_pipe_that_does_not_wait_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with _stdout(monkeypatch) as (reading, writing):
        os.set_blocking(writing, False)
        echo = Echo()
        echo("stdout", b"x" * FULL)
        echo.close(0.05)
        assert _read(reading, FULL) == b"x" * FULL


async def test_beyond_the_most_the_program_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with _stdout(monkeypatch) as (reading, _):
        echo = Echo(most=FULL)
        assert echo("stdout", b"x" * FULL) is None
        room = echo("stdout", b"y" * FULL)
        assert room is not None
        waiting = asyncio.ensure_future(room)
        assert not (await asyncio.wait([waiting], timeout=0.2))[0]
        found = await asyncio.to_thread(_read, reading, 2 * FULL)
        await asyncio.wait_for(waiting, PATIENCE_S)
        assert found == b"x" * FULL + b"y" * FULL
        echo.close()


def test_a_full_disk_is_said_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        echo = Echo()
        echo("stdout", b"one\n")
        echo("stdout", b"two\n")
        echo.close()
    said = "watchfloor: the program's output can no longer be written: No space left on device\n"
    assert capfd.readouterr().err == said
