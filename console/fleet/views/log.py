"""The event log of one session as a view: one line an event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Final, NamedTuple

from console.fleet.facts import SessionKey
from console.fleet.log import UNREAD, LogEntry
from console.fleet.reseeds import reseed_word
from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.wording import (
    Glyphs,
    Tone,
    asked_text,
    by_policy,
    clock_time,
    elapsed,
    exact_line,
    first_line,
    masked,
    one_line,
)
from watchfloor.text import NOTHING, Clean, numeral, since
from watchfloor.words import Primitive

_SAYS: Final[Mapping[str, str]] = {"assistant": "say", "user": "user", "operator": "told", "system": "system"}
_WORD: Final[Mapping[str, str]] = {
    "reasoning": "think",
    "tool_call": "tool",
    "tool_output": "out",
    "tool_result": "done",
    "diff": "diff",
    "plan": "plan",
    "progress": "progress",
    "notice": "notice",
    "mail": "mail",
    "request_opened": "ask",
    "request_resolved": "decided",
    "lifecycle": "state",
    "child": "child",
    "intervention": "by hand",
    "reseeded": "reseed",
    "result": "result",
    "raw": "raw",
    "unknown": "unknown",
    UNREAD: "unread",
}
_PROSE: Final = frozenset({"message", "reasoning", "plan", "progress", "notice", "mail", "result"})
_QUIET: Final = frozenset({"reasoning", "tool_output", "lifecycle", "progress", "raw", "unknown", "child", "plan"})
_OUTPUT: Final = frozenset({"tool_result", "diff", "raw", "unknown"})
"""Of these a line holds the first one, and says how many more there are."""
_PLAIN_HEAD: Final = frozenset({"assistant", "user", "operator", "system", "stdout", "message"})
"""Labels that the kind of the line tells already."""


class Line(NamedTuple):
    """One event as a line."""

    time: Clean
    kind: Clean
    text: Clean
    tone: Tone
    tail: Clean
    matched: bool = False
    """Does it hold what is looked for?"""


class SessionLog:
    """The lines of one session. Reads the fleet as it is; set `now` before painting, for the waits that are shown."""

    def __init__(self, store: Store, key: SessionKey, glyphs: Glyphs, tz: tzinfo | None = None) -> None:
        self._store = store
        self.key = key
        self._glyphs = glyphs
        self._tz = tz
        self.now = 0
        """Local time in milliseconds."""
        self._gone = Session(key)

    @property
    def _session(self) -> Session:
        return self._store.sessions.get(self.key, self._gone)

    @property
    def first(self) -> int:
        return self._session.log.first

    def __len__(self) -> int:
        return len(self._session.log)

    @property
    def earlier(self) -> int:
        """Events before the first line, by the source's own count."""
        log = self._session.log
        first = next((seq for i in range(len(log)) if (seq := log.entry(i).fact.seq) is not None), None)
        return first - 1 if first is not None else 0

    def entry(self, i: int, /) -> LogEntry:
        """What line `i` is made from."""
        return self._session.log.entry(i)

    def line(self, i: int, /, *, matched: bool = False) -> Line:
        """Line `i` of those kept, oldest first."""
        session = self._session
        entry = session.log.entry(i)
        fact = entry.fact
        kind = fact.data.get("of", "message") if fact.kind == "delta" else fact.kind
        text, more = _text(entry, kind, self._head(entry))
        if kind == "request_opened" and not text:
            request = session.requests.get(fact.data.get("request", ""))
            text = asked_text(request) if request is not None else text
        tone, tail = self._tone_and_tail(session, entry, kind)
        if entry.open and not tail:
            tail = Clean("a part is missing") if entry.holed else Clean(self._glyphs["cut"])
        if more:
            tail = Clean(f"+{more:,} line{'s' if more > 1 else ''}  {tail}".rstrip())
        return Line(clock_time(fact.at, self._tz), self._kind(entry, kind), masked(text), tone, tail, matched)

    def _head(self, entry: LogEntry) -> Clean:
        """The label; of a reseed what it does, which its event leaves out and our own command knows."""
        data = entry.fact.data
        if entry.fact.kind == "intervention" and data.get("primitive") == Primitive.RESEED:
            trail = self._store.trails.get(data.get("command", ""))
            return Clean(trail.verb) if trail is not None else entry.fact.head
        return entry.fact.head

    def _kind(self, entry: LogEntry, kind: str) -> Clean:
        if kind == "intervention" and by_policy(self._store.trails, entry.fact.data):
            return Clean("policy")
        return _kind(entry, kind)

    def whole(self, i: int, /) -> Clean:
        """All that line `i` stands for, line breaks kept: its label and its text, secrets masked."""
        entry = self._session.log.entry(i)
        head = self._head(entry)
        said = entry.text if not head or head in _PLAIN_HEAD or head == entry.text else f"{head}\n{entry.text}"
        return masked(Clean(said.strip("\n")))

    def _tone_and_tail(self, session: Session, entry: LogEntry, kind: str) -> tuple[Tone, Clean]:
        data = entry.fact.data
        match kind:
            case "tool_result":
                return self._result(data)
            case "request_opened":
                request = session.requests.get(data.get("request", ""))
                if request is None or not request.open:
                    return "plain", NOTHING
                source = self._store.sources[session.key.source]
                waits = elapsed(self.now + source.ahead_ms, request.asked_at)
                return "attention", Clean(f"waits for you {waits}")
            case "unread":
                more = f"the last of {numeral(data['count'])}" if data["count"] > 1 else ""
                return "attention", Clean(more)
            case "notice":
                tones: Mapping[str, Tone] = {"error": "failed", "warning": "attention"}
                return tones.get(data.get("level", ""), "quiet"), NOTHING
            case "mail":
                return ("failed" if data.get("mail_state") == "error" else "plain"), Clean(data.get("mail_state", ""))
            case "lifecycle" if data.get("lifecycle") == "failed":
                return "failed", NOTHING
            case "result" if entry.fact.head == "error":
                return "failed", NOTHING
            case "message" | "result" if data.get("cut"):
                return "plain", Clean("cut off")
            case _:
                return ("quiet" if kind in _QUIET else "plain"), NOTHING

    def _result(self, data: Mapping[str, object]) -> tuple[Tone, Clean]:
        status, exit_code, duration_ms = data.get("status"), data.get("exit_code"), data.get("duration_ms")
        good = status == "ok"
        words = [self._glyphs["completed" if good else "failed" if status == "error" else "stopped"]]
        if isinstance(exit_code, int) and exit_code:
            words.append(f"exit {numeral(exit_code)}")
        if isinstance(duration_ms, int):
            words.append(f"{duration_ms / 1000:.1f} s" if 0 <= duration_ms < 60_000 else since(duration_ms))
        return ("plain" if good else "failed" if status == "error" else "quiet"), Clean(" ".join(words))


def _kind(entry: LogEntry, kind: str) -> Clean:
    if kind == "message":
        return Clean(_SAYS.get(entry.fact.data.get("role", "assistant"), "say"))
    if kind == "reseeded":
        return Clean(reseed_word(entry.fact.data.get("mode")))
    if kind == UNREAD and entry.fact.data["told"]:
        return Clean("error")
    return Clean(_WORD.get(kind, "raw"))


def _text(entry: LogEntry, kind: str, head: Clean) -> tuple[Clean, int]:
    """The event on one line behind its label, and how many lines of it are left out."""
    text, more = entry.text, 0
    if kind == "reseeded":
        return one_line(text), 0  # what it is called stands before it
    if kind == "tool_output":
        # A harness joins what a program printed in the same moment: none of its lines may go missing for that.
        line = exact_line(Clean(text.strip("\n")))
    elif kind in _OUTPUT:
        line, more = first_line(text)
    else:
        write = entry.fact.data.get("line")
        line = write() if write is not None else NOTHING
        line = line or (one_line(text) if kind in _PROSE else exact_line(text))
    if entry.fact.kind == "delta" or not head or head in _PLAIN_HEAD or (kind == "tool_result" and line):
        return line, more
    return Clean(f"{head}  {line}") if line else head, more
