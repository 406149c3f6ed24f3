"""The sources as an operator looks after them: who is heard, since when, what is missing, what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Final

from console.fleet.facts import FaultFact
from console.fleet.state import Source
from console.fleet.store import Store
from console.fleet.views.wording import Segment, Tone, clock_time, masked
from watchfloor.text import NOTHING, Clean, clean_line, since
from watchfloor.words import Contact, Continuity, Role

FactLine = tuple[Clean, Clean, Tone]

_TONES: Final[Mapping[Contact, Tone]] = {
    Contact.LIVE: "running",
    Contact.CONNECTING: "quiet",
    Contact.SILENT: "lost",
    Contact.LOST: "lost",
    Contact.UNATTACHED: "lost",
    Contact.REFUSED: "failed",
}
_WHOLE: Final = frozenset({Continuity.WHOLE, Continuity.ARRIVAL_ORDER})


def contact_word(source: Source) -> Clean:
    """The state of a connection in a word; one that is being tried again is still lost."""
    if source.contact is Contact.CONNECTING and source.lost_since is not None:
        return Clean("trying again")
    if source.contact is Contact.LOST and not source.welcomed and not source.given_up:
        return Clean("not reached")
    if source.recorded and source.live:
        return Clean("recording")
    return Clean("given up" if source.given_up else source.contact.value)


class SourceRows:
    """The sources as rows, in the order in which they were configured: name, state, since, sessions, requests, faults
    and the host."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        self._now = now
        self._sources = list(store.sources.values())
        self._sessions = Counter(key.source for key, session in store.sessions.items() if not session.placeholder)
        self._waiting = Counter(key.source for key, request in store.requests.items() if request.open)

    def __len__(self) -> int:
        return len(self._sources)

    def key(self, place: int) -> str:
        return self._sources[place].name

    def row(self, place: int) -> Sequence[Segment]:
        source = self._sources[place]
        tone = _TONES[source.contact] if source.lost_since is None else "lost"
        begun = source.contact_since if source.lost_since is None else source.lost_since
        waiting, faults = self._waiting[source.name], source.fault_count + source.error_count
        return (
            (source.shown, "plain"),
            (contact_word(source), tone),
            (Clean(since(self._now - begun) if begun else ""), "quiet"),
            (Clean(f"{self._sessions[source.name]:,}"), "plain"),
            (Clean(f"{waiting:,}" if waiting else ""), "attention"),
            (Clean(f"{faults:,}" if faults else ""), "attention"),
            (source.why if not source.live else _host(source), "quiet" if source.live else tone),
        )


class FaultRows:
    """What a source sent that could not be read, and the errors that it reports, newest first."""

    def __init__(self, source: Source | None) -> None:
        self.faults: Sequence[FaultFact] = tuple(reversed(source.faults)) if source is not None else ()

    def __len__(self) -> int:
        return len(self.faults)

    def key(self, place: int) -> int:
        # Itself, not its place: one that comes in must not move the cursor off what is being read.
        return id(self.faults[place])

    def row(self, place: int) -> Sequence[Segment]:
        fault = self.faults[place]
        times = f" ({fault.count:,} times)" if fault.count > 1 else ""
        what: Segment = (Clean("reported"), "lost") if fault.told else (Clean("unreadable"), "attention")
        return what, (Clean(f"{fault.reason}{times}"), "plain")


def fault_lines(fault: FaultFact) -> list[FactLine]:
    """One fault in full: why, whose, and the piece of it that was kept, cleaned and with secrets masked."""
    lines: list[FactLine] = [(Clean("why"), fault.reason, "plain")]
    if fault.session is not None:
        lines.append((Clean("session"), clean_line(fault.session), "plain"))
    if fault.fatal:
        lines.append((Clean("and"), Clean("it ended the connection"), "lost"))
    raw = masked(fault.raw)
    said = (raw, "plain") if raw else (Clean("nothing of it was kept"), "quiet")
    lines.append((Clean("as it came"), said[0], "plain" if raw else "quiet"))
    return lines


def source_lines(store: Store, name: str, now: int, tz: tzinfo | None) -> list[FactLine]:
    """All that is known of a source, a labelled line each; none where it is not known."""
    source = store.sources.get(name)
    if source is None:
        return []
    lines: list[FactLine] = [(Clean("source"), source.shown, "plain"), *_contact(source, now, tz)]
    if source.welcomed:
        lines.append((Clean("host"), _host(source), "plain"))
        lines.append((Clean("we are"), _ourselves(source), "plain"))
        lines.append((Clean("clock"), _clock(source), "plain"))
        if source.heartbeat_s:
            beat = f"every {source.heartbeat_s:g} s"
            lines.append((Clean("heartbeat"), Clean(beat), "plain"))
    if (answer := _answered(store, name)) is not None:
        lines.append((Clean("latency"), Clean(f"the last command was answered after {answer:,} ms"), "plain"))
    return [*lines, *_holds(store, source, now), *_faults(source)]


def _contact(source: Source, now: int, tz: tzinfo | None) -> list[FactLine]:
    tone = _TONES[source.contact] if source.lost_since is None else "lost"
    lines: list[FactLine] = [(Clean("contact"), contact_word(source), tone)]
    begun = source.contact_since if source.lost_since is None else source.lost_since
    if begun:
        lines.append((Clean("since"), Clean(f"{clock_time(begun, tz)}, {since(now - begun)} ago"), "plain"))
    if source.why:
        lines.append((Clean("why"), source.why, tone))
    if source.tries:
        lines.append((Clean("tries"), Clean(f"{source.tries:,} since it was last connected for a while"), "plain"))
    if source.retry_at is not None and source.contact in (Contact.LOST, Contact.REFUSED):
        left = max(0, source.retry_at - now)
        when = "due now" if not left else f"in {since(left + 999)}"
        lines.append((Clean("next try"), Clean(when), "plain"))
    elif source.given_up:
        lines.append((Clean("next try"), Clean("none: nobody dials it any more"), "plain"))
    if source.lost_since is not None and source.welcomed:
        lines.append((Clean("shown"), Clean("its sessions as they were last known; they may go on without us"), "lost"))
    return lines


def _host(source: Source) -> Clean:
    return Clean(f"{source.host} {source.host_version}".strip()) if source.welcomed else NOTHING


def _ourselves(source: Source) -> Clean:
    role = source.role.value
    may = "may only watch" if source.role is Role.OBSERVER else "may intervene"
    return Clean(f"{source.principal or 'without a name'}, {role}: {may}")


def _clock(source: Source) -> Clean:
    off = source.ahead_ms
    if abs(off) < 500:
        return Clean("as ours, within half a second")
    return Clean(f"{abs(off) / 1000:,.1f} s {'ahead of' if off > 0 else 'behind'} ours")


def _answered(store: Store, name: str) -> int | None:
    """Milliseconds until the newest command to the source was acknowledged; None where none was."""
    for trail in reversed(store.trails.values()):
        if trail.target.source == name and trail.sent_at is not None and trail.acked_at is not None:
            return max(0, trail.acked_at - trail.sent_at)
    return None


def _holds(store: Store, source: Source, now: int) -> list[FactLine]:
    words = Counter(
        session.track.state(now).word
        for key, session in store.sessions.items()
        if key.source == source.name and not session.placeholder
    )
    total = words.total()
    if not total:
        return [(Clean("sessions"), Clean("none" if source.listed else "not told of yet"), "quiet")]
    lines: list[FactLine] = [(Clean("sessions"), Clean(f"{total:,}"), "plain")]
    for word in Continuity:
        if words[word]:
            tone: Tone = "plain" if word in _WHOLE else "quiet" if word is Continuity.NOT_FOLLOWED else "attention"
            lines.append((Clean("continuity"), Clean(f"{words[word]:,} {word.value}"), tone))
    if source.behind:
        lines.append((Clean("behind"), Clean(f"{source.behind:,} events"), "attention"))
    return lines


def _faults(source: Source) -> list[FactLine]:
    lines: list[FactLine] = []
    if source.fault_count:
        lines.append((Clean("unreadable"), Clean(f"{source.fault_count:,}"), "attention"))
    if source.error_count:
        lines.append((Clean("reported"), Clean(f"{source.error_count:,} errors of its own"), "attention"))
    return lines
