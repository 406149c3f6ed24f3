"""The verb that lists the messages to a session: how each got there, and what came of it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final

from console.cli import out
from console.cli.exits import OK, Fail
from console.cli.link import Link, attached
from console.fleet.views.wording import one_line
from watchfloor.connector import Record
from watchfloor.text import Clean, clean, clean_line, redact
from watchfloor.words import EXIT_CODE, OutcomeKind

PAGE: Final = 500
_TEXTS: Final = ("text", "response", "error")
_WORDS: Final = ("ref", "state", "delivery", "by", "reply_to", "event")
_LOOKS_S: Final = 0.25
"""How often it is asked for again, where it is waited for."""


def mailbox(args: Namespace) -> int:
    """List the messages, or tell of one. Raises Fail, Unreachable."""
    return asyncio.run(_mailbox(args))


async def _mailbox(args: Namespace) -> int:
    async with attached(args, intervenes=False, record=Record.NONE) as link:
        session = link.meant(args.session)
        if link.session(session) is None:
            gone = EXIT_CODE[OutcomeKind.STALE_TARGET]
            raise Fail(f"there is no session {clean_line(args.session)}{link.hint(args.session)}", gone)
        if args.ref is None:
            letters = await _all(link, session)
        else:
            letters = [await _one(link, session, args.ref, args.wait)]
        if args.json:
            for letter in letters:
                out.record({"source": link.name, "session": session, **letter})
        elif args.ref is not None:
            for line in _told(letters[0]):
                out.line(line)
        elif letters:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            out.table(("REF", "STATE", "DELIVERY", "BY", "TEXT"), [_row(letter) for letter in letters], width=width)
        else:
            out.note(f"nobody has sent {clean_line(args.session)} a message")
    return OK


async def _all(link: Link, session: str) -> list[dict[str, Any]]:
    letters: list[dict[str, Any]] = []
    while True:
        after = {"after": letters[-1]["ref"]} if letters else {}
        data = await link.ask("messages", session, {"limit": PAGE, **after})
        page = data.get("messages")
        letters += [_cleaned(one) for one in page if isinstance(one, dict)] if isinstance(page, list) else []
        if not data.get("more") or not page or not letters[-1]["ref"]:
            return letters


async def _one(link: Link, session: str, ref: str, wait_s: float) -> dict[str, Any]:
    """The message; waited for until it was answered, or ended otherwise, or the time is over."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + wait_s
    while True:
        letter = _cleaned(await link.ask("message", session, {"ref": ref}))
        if letter["response"] is not None or letter["error"] is not None or loop.time() >= ends:
            return letter
        await asyncio.sleep(min(_LOOKS_S, max(0.0, ends - loop.time())))


def _cleaned(data: Mapping[str, Any]) -> dict[str, Any]:
    words = {name: clean_line(str(data[name])) if data.get(name) is not None else None for name in _WORDS}
    texts = {name: redact(clean(str(data[name])))[0] if data.get(name) is not None else None for name in _TEXTS}
    at = data.get("at")
    return {**words, "at": at if isinstance(at, int) else None, **texts}


def _row(letter: Mapping[str, Any]) -> list[Clean]:
    return [
        *(letter[name] or Clean("") for name in ("ref", "state", "delivery", "by")),
        one_line(Clean(letter["text"] or "")),
    ]


def _told(letter: Mapping[str, Any]) -> Iterator[Clean]:
    answers = f", answers {letter['reply_to']}" if letter["reply_to"] else ""
    yield Clean(f"{letter['ref']}: {letter['state']}, {letter['delivery']}, by {letter['by']}{answers}")
    for head, name in (("", "text"), ("response", "response"), ("error", "error")):
        if letter[name] is not None:
            if head:
                yield Clean(f"{head}:")
            yield from (Clean(f"  {line}") for line in letter[name].split("\n"))
