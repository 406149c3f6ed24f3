"""Answers to what is not an event: what a session remembers, and its mail. All of it is bounded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from pydantic import JsonValue

from watchfloor.harness.base import ConversationMessage
from watchfloor.host.clients.roster import Roster
from watchfloor.host.effects import Ask
from watchfloor.host.log.events import EventLog
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.mailbox import Letter, NoSuchRef
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.wire import sound, wire
from watchfloor.protocol.events import MailState
from watchfloor.protocol.frames import Error, ErrorCode, Frame, Query, Reply
from watchfloor.protocol.given import given
from watchfloor.protocol.model import JsonObject

TEXT: Final = 16_384
"""Code points of one text of a reply; what is longer is cut, and marked so."""
MOST: Final = 500
"""Entries of one reply."""
USUAL: Final = 100
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one reply."""


class Malformed(ValueError):
    """An argument is not what the question takes. The message says which."""


class Queries:
    """Answers questions from the sessions; what this host's program answers is handed on."""

    def __init__(self, roster: Roster, log: EventLog, others: Collection[str] = ()) -> None:
        self._roster = roster
        self._log = log
        self._others = frozenset(others)
        self.asks_mirrored = False
        """Questions about sessions that others run go to the shell, which hands them on."""

    def answer(self, query: Query, conn: str) -> Frame | Ask:
        """The reply, an error that says why there is none, or what must be asked of the host's program."""
        if query.what in self._others or (self.asks_mirrored and self._mirrored(query)):
            return Ask(conn, query)
        try:
            return bounded(Reply(id=query.id, data=sound(self._data(query))))
        except NoSuchRef as error:
            return _no(query, ErrorCode.NOT_FOUND, str(error))
        except Malformed as error:
            return _no(query, ErrorCode.MALFORMED, str(error))
        except LookupError:
            named = "a session must be named" if query.session is None else f"no session '{shown(query.session)}'"
            return _no(query, ErrorCode.NOT_FOUND, f"{named} for this question")
        except NotImplementedError:
            return _no(query, ErrorCode.UNSUPPORTED, f"this host does not answer '{shown(query.what)}'")

    def _data(self, query: Query) -> JsonValue:
        match query.what:
            case "snapshot":
                return self._snapshot(self._core(query), query.args)
            case "messages":
                return self._messages(self._core(query), query.args)
            case "message":
                return _letter(self._core(query).mailbox.letter(_ref(query.args)))
            case "mailbox":
                return self._mailbox(self._core(query), query.args)
            case "stored":
                return self._stored(query.args)
            case _:
                raise NotImplementedError

    def _mirrored(self, query: Query) -> bool:
        entry = self._roster.get(query.session) if query.session is not None else None
        return entry is not None and not isinstance(entry.core, SessionCore)

    def _core(self, query: Query) -> SessionCore:
        entry = self._roster.get(query.session) if query.session is not None else None
        if entry is None:
            raise LookupError
        if not isinstance(entry.core, SessionCore):
            raise NotImplementedError
        return entry.core

    def _snapshot(self, core: SessionCore, args: JsonObject) -> JsonValue:
        """The conversation, the newest messages or those before the number `before`; `n` counts from 1."""
        messages = core.conversation.messages
        end = min(len(messages), (_number(args, "before", 1) or len(messages) + 1) - 1)
        start = max(0, end - _limit(args))
        found: list[JsonValue] = [
            _message(number, message) for number, message in enumerate(messages[start:end], start + 1)
        ]
        return {"messages": found, "total": len(messages), "more": start > 0, "model": core.conversation.model}

    def _messages(self, core: SessionCore, args: JsonObject) -> JsonValue:
        """The messages that were sent to the session, those after the ref `after`."""
        letters = core.mailbox.letters()
        if args.get("after") is not None:
            last = core.mailbox.letter(_ref(args, "after"))
            letters = letters[letters.index(last) + 1 :]
        return self._some(core, letters, args)

    def _mailbox(self, core: SessionCore, args: JsonObject) -> JsonValue:
        """The messages that nobody has consumed."""
        return self._some(core, core.mailbox.waiting(), args)

    def _some(self, core: SessionCore, letters: Sequence[Letter], args: JsonObject) -> JsonValue:
        limit = _limit(args)
        view = core.mailbox.view
        found: list[JsonValue] = [_letter(letter) for letter in letters[:limit]]
        return {"messages": found, "more": len(letters) > limit, "queued": view.queued, "refs": view.refs}

    def _stored(self, args: JsonObject) -> JsonValue:
        """The sessions that the log knows, those of which nothing runs any more included."""
        names = self._log.sessions()
        limit = _limit(args)
        found: list[JsonValue] = [
            {
                "session": name,
                "epoch": self._log.epoch(name),
                "first": self._log.first(name),
                "head": self._log.head(name),
                "live": name in self._roster,
            }
            for name in names[:limit]
        ]
        return {"sessions": found, "more": len(names) > limit}


def bounded(reply: Reply) -> Reply:
    """The reply, without as many of its oldest entries as do not fit into it."""
    if len(wire(reply)) <= LARGEST or not isinstance(reply.data, dict):
        return reply
    entries = next((name for name, value in reply.data.items() if isinstance(value, list)), None)
    rest = reply.data.get(entries) if entries is not None else None
    if not isinstance(rest, list) or len(rest) < 2:
        return reply
    half = rest[len(rest) // 2 :] if "total" in reply.data else rest[: len(rest) // 2]
    return bounded(reply.model_copy(update={"data": {**reply.data, str(entries): half, "more": True}}))


def _message(number: int, message: ConversationMessage) -> JsonObject:
    return {"n": number, "role": message.role, **_text("text", message.text), **given(ref=message.ref)}


def _letter(letter: Letter) -> JsonObject:
    item = letter.item
    state = "queued" if letter.state is MailState.SENT else letter.state.value
    data: JsonObject = {"ref": item.ref, "state": state, "delivery": letter.delivery.value, "by": item.by}
    data |= {"at": letter.at, **_text("text", item.text)}
    if letter.response is not None:
        data |= _text("response", letter.response)
    return data | given(reply_to=item.reply_to, event=item.event, error=letter.error)


def _text(name: str, text: str) -> JsonObject:
    return {name: text} if len(text) <= TEXT else {name: text[:TEXT], "cut": True}


def _limit(args: JsonObject) -> int:
    return min(_number(args, "limit", 1) or USUAL, MOST)


def _number(args: JsonObject, name: str, least: int) -> int | None:
    value: Any = args.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Malformed(f"{name} must be a whole number, {least} or more")
    return value


def _ref(args: JsonObject, name: str = "ref") -> str:
    value = args.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise Malformed(f'{name} must be the ref of a message, as in "#3"')
    return value


def _no(query: Query, code: ErrorCode, message: str) -> Error:
    return Error(code=code, message=message, about=query.id)
