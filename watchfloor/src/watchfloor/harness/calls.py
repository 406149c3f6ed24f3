"""Small parts of the function harness: ids, texts fit for an event, and calls that may block."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from watchfloor.canonical import canonical, stringify_numbers
from watchfloor.errors import ContractError, one_line

T = TypeVar("T")

MAX_TEXT: Final = 64 * 1024
"""Most characters of a tool's result that become part of its event."""


def taking(agent: object, *given: str) -> None:
    """Raises TypeError where the agent cannot be called with what it is given."""
    what = " and ".join(given)
    if not callable(agent):
        raise TypeError(f"an agent is an async function of {what}, not {type(agent).__name__}")
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):
        return  # nothing is known of it
    try:
        signature.bind(*given)
    except TypeError:
        name = getattr(agent, "__name__", type(agent).__name__)
        raise TypeError(f"{name}{signature} cannot be called with {what}") from None


async def awaited(agent: object, returned: object) -> Any:
    """What the agent returns. Raises ContractError where nothing of it can be awaited."""
    if not inspect.isawaitable(returned):
        name = getattr(agent, "__name__", type(agent).__name__)
        kind = type(returned).__name__
        raise ContractError(f"{name} returned {kind} at once, and must be an async function: write async def")
    return await returned


def distinct(what: str, names: Sequence[str]) -> None:
    """Raises ValueError where two of them are the same."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise ValueError(f"two of the {what} are {twice!r}: an answer could not say which is meant")


def new_id(prefix: str) -> str:
    """An id that is unique for ever."""
    return f"{prefix}-{secrets.token_hex(8)}"


def sound(text: str) -> str:
    """The text with lone surrogates replaced: they cannot be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain(value: object) -> Any:
    """A deep copy made of what JSON has. Raises CanonicalError where the value is not JSON, with the path."""
    canonical(stringify_numbers(value))
    return _plain(value)


def _plain(value: object) -> object:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def result_text(value: object) -> tuple[str, bool]:
    """A tool's value as the text of its event, and whether it was cut."""
    match value:
        case None:
            text = ""
        case str():
            text = value
        case bytes():
            text = value.decode("utf-8", "replace")
        case _:
            text = json.dumps(value, ensure_ascii=False, default=str)
    return sound(text[:MAX_TEXT]), len(text) > MAX_TEXT


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Run a call that may block in a thread of its own; a call that never returns keeps no program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(call)
        except Exception as error:
            # A future cannot hold StopIteration.
            post(error if not isinstance(error, StopIteration) else RuntimeError("the call raised StopIteration"))
        except BaseException as error:  # an exit asked for by a tool must not end the host
            post(RuntimeError(one_line(error)))
        else:
            post(None, value)

    def post(error: Exception | None, value: T | None = None) -> None:
        def settle() -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)  # type: ignore[arg-type]  # without an error there is a value

        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop was closed meanwhile
            return

    threading.Thread(target=work, name="tool call", daemon=True).start()
    return future
