"""How each kind of event looks as a block of the transcript."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

from console.fleet.facts import SessionKey
from console.fleet.log import UNREAD, LogEntry
from console.fleet.reseeds import reseed_word
from console.fleet.state import Request
from console.fleet.store import Store
from console.fleet.transcript.prose import BodyLine, diff_lines, exact_lines, output_lines, prose_lines
from console.fleet.views.wording import (
    Glyphs,
    Tone,
    asked_text,
    by_policy,
    clock_time,
    elapsed,
    exact_line,
    masked,
    one_line,
)
from watchfloor.text import NOTHING, Clean, numeral, since

OUTPUT_LINES: Final = 6
"""Lines of what a tool put out, or of a thought, that are shown while its block is closed."""
DIFF_LINES: Final = 12
ALL_LINES: Final = 5_000
"""Lines of one block that are shown at most, open or not."""

Drawn = Mapping[str, Any]
"""The fields of a `Block` but its key and attempt."""

_SAYS: Final[Mapping[str, tuple[str, Tone]]] = {
    "assistant": ("agent", "plain"),
    "user": ("user", "plain"),
    "operator": ("told", "running"),
    "system": ("system", "quiet"),
}
_WORD: Final[Mapping[str, str]] = {
    "reasoning": "thinks",
    "lifecycle": "state",
    "intervention": "by hand",
    "reseeded": "reseed",
    "request_opened": "asks",
    "request_resolved": "decided",
    "unknown": "unknown",
    "tool_output": "output",
    UNREAD: "unread",
}
_LEVEL: Final[Mapping[str, Tone]] = {"error": "failed", "warning": "attention"}
_ENDED: Final[Mapping[str, str]] = {"ok": "completed", "error": "failed"}


def kind_of(entry: LogEntry) -> str:
    """What the entry is, or will be once it is whole."""
    fact = entry.fact
    return str(fact.data.get("of", "message")) if fact.kind == "delta" else fact.kind


class Scenery:
    """What blocks are made with besides their entries. `now` is the local time in milliseconds."""

    def __init__(self, store: Store, key: SessionKey, glyphs: Glyphs, tz: tzinfo | None) -> None:
        self._store = store
        self._key = key
        self.glyphs = glyphs
        self._tz = tz
        self.now = 0

    @property
    def there(self) -> int:
        """The time by the source's clock."""
        source = self._store.sources.get(self._key.source)
        return self.now + (source.ahead_ms if source is not None else 0)

    def clock(self, ms: int) -> Clean:
        return clock_time(ms, self._tz)

    def request(self, entry: LogEntry) -> Request | None:
        session = self._store.sessions.get(self._key)
        id = entry.fact.data.get("request", "")
        return session.requests.get(id) if session is not None else None

    def ours(self, command: object) -> str | None:
        """What a command of ours does, in one word."""
        trail = self._store.trails.get(command) if isinstance(command, str) else None
        return trail.verb if trail is not None else None

    def by_policy(self, entry: LogEntry) -> bool:
        """Was a command taken by a rule, and not by hand?"""
        return by_policy(self._store.trails, entry.fact.data)

    def flying(self, call: object) -> int | None:
        """Since when a call is in flight, as far as its source says."""
        session = self._store.sessions.get(self._key)
        flights = session.in_flight if session is not None else ()
        return next((begun for id, _, begun in flights if id == call), None)

    def changes_with(self, entry: LogEntry) -> Hashable:
        """What besides its entries a block depends on: waits that are counted, a request that has ended."""
        kind, data = entry.fact.kind, entry.fact.data
        if kind == "request_opened":
            request = self.request(entry)
            open_now = request is not None and request.open
            return (request.version if request is not None else 0, self.now // 1_000 if open_now else 0)
        if kind == "notice" and (at := data.get("next_at")) is not None and at > self.there:
            return self.there // 1_000
        if kind == "tool_call":
            begun = self.flying(data.get("call"))
            return None if begun is None else (self.there - begun) // 1_000
        return None


def one_block(entry: LogEntry, scenery: Scenery) -> Drawn:
    """An event that stands for itself."""
    fact, data = entry.fact, entry.fact.data
    kind, text, head = kind_of(entry), masked(entry.text), fact.head
    label, tail = _WORD.get(kind, kind.replace("_", " ")), NOTHING
    tone: Tone = "plain"
    title, body, most, request = NOTHING, tuple[BodyLine, ...](), None, None
    match kind:
        case "message":
            role = str(data.get("role", "assistant"))
            label, tone = _SAYS.get(role, ("says", "plain"))
            title = NOTHING if head in (role, "message") else head
            body, tail = tuple(prose_lines(text)), _cut(entry)
        case "reasoning" | "result" | "raw" | "unknown":
            body, tone, tail = tuple(prose_lines(text)), "quiet", _cut(entry)
            title, most = (NOTHING if kind == "reasoning" else head), OUTPUT_LINES
            if kind == "result":
                tone, most = ("failed" if head == "error" else "plain"), None
        case "plan":
            title, body = head, _steps(text, scenery)
        case "notice":
            tone = _LEVEL.get(str(data.get("level")), "quiet")
            title, tail = _joined(head, one_line(text)), _retry(data, scenery)
        case "mail":
            tone = "failed" if data.get("mail_state") == "error" else "plain"
            delivery = data.get("delivery")
            tail = Clean(" ".join(str(word) for word in (delivery, data.get("mail_state")) if word))
            answers = f"answers {data['reply_to']}" if data.get("reply_to") else ""
            title, body = _joined(head, Clean(answers)), tuple(prose_lines(text)) if text else ()
        case "request_opened":
            request = str(data.get("request", ""))
            title, tail, tone = _asked(entry, scenery)
        case "lifecycle":
            tone = "failed" if data.get("lifecycle") == "failed" else "quiet"
            title = _joined(head, one_line(text))
        case "intervention":
            title = _joined(Clean(scenery.ours(data.get("command")) or head), one_line(text))
            label, tone = "policy" if scenery.by_policy(entry) else label, "running"
        case "reseeded":
            label, title, tone = reseed_word(data.get("mode")), one_line(text), "attention"
        case _ if kind == UNREAD:
            label = "error" if data["told"] else label
            tail = Clean(f"the last of {numeral(data['count'])}" if data["count"] > 1 else "")
            title, tone = exact_line(text), "attention"
        case "tool_output" | "diff":
            return tool_block([entry], scenery)
        case _:
            title, tone = _joined(head, one_line(text)), "quiet"
    return _drawn(entry, scenery, label, title, tail, tone, body=body, most=most, source=text or title, request=request)


def tool_block(entries: Sequence[LogEntry], scenery: Scenery) -> Drawn:
    """A call with what it put out, what it changed, and how it ended."""
    first = entries[0]
    call = next((entry for entry in entries if entry.fact.kind == "tool_call"), None)
    result = next((entry for entry in reversed(entries) if entry.fact.kind == "tool_result"), None)
    title, body = NOTHING, list[BodyLine]()
    label = "tool"
    source: list[str] = []
    if call is not None:
        text = masked(call.text)
        source.append(text)
        write = call.fact.data.get("line")
        short = write() if write is not None else NOTHING
        title = _joined(call.fact.head, masked(short) if short else _first(text, scenery.glyphs))
        if "\n" in text.strip("\n"):
            # What is run, to the letter; the first line above it is only to be found again.
            body += exact_lines(text)
    put_out = Clean("".join(_ended_line(entry.text) for entry in entries if kind_of(entry) == "tool_output"))
    diffs = [entry for entry in entries if kind_of(entry) == "diff"]
    if call is None and not put_out and diffs:
        label, title = "diff", diffs[0].fact.head
    elif call is None and result is None:
        label = "output"
    whole = len(body)
    put_out = masked(put_out)
    body += output_lines(put_out)
    for diff in diffs:
        if diff.fact.head and diff.fact.head != title:
            body.append(BodyLine("note", diff.fact.head))
        body += diff_lines(masked(diff.text))
    if result is not None and (said := masked(result.text)) and said.strip() not in put_out:
        body += output_lines(said)
        put_out = Clean(put_out + said)
    tone, tail = _outcome(call, result, scenery)
    source += [put_out, *(masked(diff.text) for diff in diffs)]
    most = whole + (DIFF_LINES if diffs else OUTPUT_LINES)
    return _drawn(
        first,
        scenery,
        label,
        title,
        tail,
        tone,
        body=tuple(body),
        most=most,
        source=Clean("\n".join(filter(None, source))),
    )


def _drawn(entry: LogEntry, scenery: Scenery, label: str, title: Clean, tail: Clean, tone: Tone, **rest: Any) -> Drawn:
    body: tuple[BodyLine, ...] = rest.pop("body", ())
    if len(body) > ALL_LINES:
        left = f"{len(body) - ALL_LINES:,} more lines are not shown"
        body = (*body[:ALL_LINES], BodyLine("note", Clean(left)))
    time = scenery.clock(entry.fact.at)
    return {"time": time, "kind": Clean(label), "title": title, "tail": tail, "tone": tone, "body": body, **rest}


def _joined(*texts: Clean) -> Clean:
    return Clean("  ".join(text for text in texts if text))


def _first(text: str, glyphs: Glyphs) -> Clean:
    line, _, rest = text.strip("\n").partition("\n")
    return Clean(exact_line(Clean(line)) + (f" {glyphs['cut']}" if rest else ""))


def _ended_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _cut(entry: LogEntry) -> Clean:
    if entry.holed:
        return Clean("a part is missing")
    if entry.open:
        return Clean("writing")
    return Clean("cut off" if entry.fact.data.get("cut") else "")


def _steps(text: Clean, scenery: Scenery) -> tuple[BodyLine, ...]:
    """The steps of a plan, each behind the sign of its state."""
    lines: list[BodyLine] = []
    for line in text.split("\n"):
        state, _, step = line.partition(": ")
        sign = {"done": "completed", "active": "running", "in_progress": "running", "failed": "failed"}.get(
            state, "idle"
        )
        lines.append(BodyLine("item", Clean(f"{scenery.glyphs[sign]} {step} ({state})" if step else line), 2))
    return tuple(lines)


def _retry(data: Mapping[str, Any], scenery: Scenery) -> Clean:
    if not data.get("retrying"):
        return NOTHING
    at = data.get("next_at")
    if at is None or at <= scenery.there:
        return Clean("retrying")
    return Clean(f"tries again in {since(at - scenery.there)}")


def _asked(entry: LogEntry, scenery: Scenery) -> tuple[Clean, Clean, Tone]:
    request = scenery.request(entry)
    title = masked(one_line(entry.text))
    if request is None:
        return title, NOTHING, "plain"
    title = masked(asked_text(request)) if request.fact is not None or not title else title
    if not request.open:
        return title, Clean(request.state.value), "plain"
    return title, Clean(f"waits for you {elapsed(scenery.there, request.asked_at)}"), "attention"


def _outcome(call: LogEntry | None, result: LogEntry | None, scenery: Scenery) -> tuple[Tone, Clean]:
    if result is None:
        if call is None:
            return "plain", NOTHING
        begun = scenery.flying(call.fact.data.get("call"))
        if begun is not None:
            return "running", Clean(f"{scenery.glyphs['running']} running {elapsed(scenery.there, begun)}")
        return "plain", Clean("no result yet")
    data = result.fact.data
    status, exit_code, duration = str(data.get("status")), data.get("exit_code"), data.get("duration_ms")
    words = [scenery.glyphs[_ENDED.get(status, "stopped")], status]
    if isinstance(exit_code, int) and exit_code:
        words.append(f"exit {numeral(exit_code)}")
    if isinstance(duration, int):
        words.append(f"{duration / 1000:.1f} s" if 0 <= duration < 60_000 else since(duration))
    tone: Tone = "plain" if status == "ok" else "failed" if status == "error" else "quiet"
    return tone, Clean(" ".join(words))
