"""All sessions of one server: what it answers and what it tells goes in, what the mirror shows comes out.

No input and no output of its own: what has to be asked of the server is left in `wants`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from console.connectors.bamboo import history, offers
from console.connectors.bamboo.asking import Asking
from console.connectors.bamboo.gates import Gates
from console.connectors.bamboo.requests import source_id
from console.connectors.bamboo.showing import fields_of
from console.connectors.bamboo.state import CANCELLED, DONE, ENDED, FAILED, Session, Want
from console.connectors.bamboo.talk import Talk
from console.connectors.web.reading import Json, each, flag, millis, number, part, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Mail, MailState, Message, Notice
from watchfloor.protocol.model import Decision

TAKEN: Final = 2_000
"""Events of the feed whose numbers are remembered."""
GIVES_WAY_MS: Final = 15_000
"""How long the tool of an interrupted run may take to give way."""
_STANDING: Final = ("is_running", "last_run_status", "has_pending_question", "running_child_count")
_INTERRUPTED: Final = "Agent execution cancelled by user"


class Feed:
    """`follow_all`: the conversations of all sessions that run are followed, not only of those that are looked at."""

    def __init__(self, mirror: Mirror, *, follow_all: bool) -> None:
        self._mirror = mirror
        self._follow_all = follow_all
        self.sessions: Final[dict[str, Session]] = {}
        self.wants: set[tuple[Want, str]] = set()
        self.cursor = 0
        """The number of the newest event on the feed that was taken."""
        self._taken: OrderedDict[int, str] = OrderedDict()
        """The newest events that were taken since the feed was opened at `_base`: number -> time, as it was told."""
        self._base = 0
        self.live_from = 0
        """Events of before this time are known otherwise."""
        self.talk: Final = Talk(mirror)
        self.gates: Final = Gates(self, mirror)
        self.asking: Final = Asking(self, mirror)

    # --- what the server answers

    def listed(self, infos: Iterable[Json], active: Sequence[Json]) -> None:
        """All sessions that there are, and those of them that run."""
        infos = [info for info in infos if text(info, "id")]
        runs = {text(run, "session_id") or "": text(run, "run_id") for run in active}
        kept = {text(info, "id") or "" for info in infos}
        for id in self.sessions.keys() - kept:
            self.gone(id)
        # Parents first: a child is shown below one that is there.
        for info in sorted(infos, key=lambda info: number(info, "spawn_depth") or 0):
            known = self.sessions.get(text(info, "id") or "")
            if known is not None and any(known.info.get(name) != info.get(name) for name in _STANDING):
                # One of the two is older, and nothing says which.
                self.wants.add((Want.READ, known.id))
            session = self._known(text(info, "id") or "", info)
            session.run = runs.get(session.id)
            session.moves += 1
            if flag(info, "has_pending_question") or session.pending is not None:
                # What is asked, and how what was asked has ended, is said by the session alone.
                self.wants.add((Want.READ, session.id))
            if session.run is not None:
                self._follow(session)
            elif session.read:
                self.wants.add((Want.PAST, session.id))
            self.show(session)

    def found(
        self, info: Json, pending: Json | None, run: str | None = None, choice: history.Choice | None = None
    ) -> None:
        """One session, read now; `pending` is what it waits for, None where it waits for nothing. `run` goes on, as far
        as that was asked. `choice`: what was chosen where it waited for something else before."""
        id = text(info, "id") or ""
        if not id:
            return
        known = id in self.sessions
        session = self._known(id, info)
        if flag(info, "is_running") is False and session.interrupting is None:
            # One that is being interrupted says so at once, long before its tool at work has given way.
            session.run = None
        elif flag(info, "is_running"):
            self._began(session, run)
        if not session.deciding:
            if session.pending is not None and (pending is None or source_id(pending) != source_id(session.pending)):
                self.asking.ended_elsewhere(session, choice)
            if pending is not None:
                self.asking.asks(session, pending)
        if not session.running and session.status in ENDED:
            self.gates.over(session)
        self.show(session)
        if not known:
            self.gates.heard_of(session)
            for child in [one for one in self.sessions.values() if text(one.info, "parent_session_id") == id]:
                # It was heard of first.
                self.show(child)

    def _known(self, id: str, info: Json) -> Session:
        session = self.sessions.setdefault(id, Session(id))
        session.info, session.stale = info, False
        return session

    def gone(self, id: str) -> None:
        """A session is there no more."""
        self.sessions.pop(id, None)
        self.wants = {(want, about) for want, about in self.wants if about != id}
        self._mirror.gone(id)

    def active(self, runs: Sequence[Json], moves: Mapping[str, int]) -> None:
        """The runs that went on when sessions had moved so often: what was missed of begins and ends is made up for."""
        known = {text(run, "session_id") or "": text(run, "run_id") for run in runs}
        for id in known.keys() - self.sessions.keys():
            self.wants.add((Want.READ, id))
        now = self._mirror.now()
        for session in self.sessions.values():
            run = known.get(session.id)
            giving_way = session.interrupting is not None and now - session.interrupting[1] < GIVES_WAY_MS
            if (
                moves.get(session.id) != session.moves
                or giving_way
                or (run == session.run and session.running == bool(run))
            ):
                continue
            if run is not None:
                self._began(session, run)
                self.wants.add((Want.READ, session.id))
            else:
                self._over(session)
            self.show(session)

    def past(self, session: Session, answer: Json, *, results_only: bool = False) -> None:
        """The history of a session, whole or from its cursor on. `results_only`: a run goes on, whose words come on its
        channel; only what tools said is taken."""
        messages = each(answer, "messages")
        for id in session.unread_mail.keys() & {text(message, "id") or "" for message in messages}:
            # Older servers tell nowhere else that a run has taken up what it was given.
            self.taken_up(session, id)
        open_call = text(session.pending, "tool_call_id") if session.pending is not None else None
        found = list(history.entries(messages, ours=session.refs, open_call=open_call))
        if results_only:
            found = [entry for entry in found if entry.kind == "result"]
            self._mirror.emit(session.id, *(entry.event for entry in history.unknown_to(session, found)))
            return
        if flag(answer, "truncated") and not session.read:
            words = "older messages of this session are kept by the server, and not shown here"
            self._mirror.emit(session.id, Notice(at=0, code="truncated", text=words, key="truncated"))
        new = history.unknown_to(session, found)
        session.partial = session.partial or (session.channel and not session.read)
        session.read = True
        session.cursor = history.cursor_of(messages, open_call) or session.cursor
        self._mirror.emit(session.id, *(entry.event for entry in new))
        self.show(session)

    def unreadable(self, id: str, what: str, why: str) -> None:
        """The server does not say this of a session."""
        if id in self.sessions:
            words = f"{what} cannot be read: {why}"
            notice = Notice(at=0, level=Level.WARNING, code="unreadable", text=words, key=f"unreadable/{words}")
            self._mirror.emit(id, notice)

    def tasks(self, session: Session, answer: Json) -> None:
        if text(answer, "session_id") in (None, session.id):
            self.talk.tasks(session, answer)

    def metrics(self, listed: Iterable[Json]) -> None:
        """What sessions have used, as the server counts it."""
        for entry in listed:
            session = self.sessions.get(text(entry, "session_id") or "")
            if session is not None and part(entry, "total_token_usage"):
                session.usage = entry
                self.show(session)

    # --- what the server tells

    def event(self, seq: int, envelope: Json) -> None:
        """An event of the feed. One that was taken before is dropped."""
        if seq > 0 and not self._is_news(seq, text(envelope, "ts") or ""):
            return
        at = millis(envelope, "ts")
        if at is not None and at < self.live_from:
            return
        event = part(envelope, "event")
        id = text(envelope, "session_id") or text(event, "session_id")
        kind = text(event, "type") or ""
        if id is None:
            return
        if kind == "session_deleted":
            self.gone(id)
            return
        session = self.sessions.get(id)
        if session is None:
            # What was told of it is in what it says of itself.
            self.wants.add((Want.READ, id))
            return
        self._event(session, kind, event, at)

    def opened(self, seq: int) -> None:
        """The feed is followed from the event after this one."""
        self.cursor = self._base = seq
        self._taken.clear()

    def _is_news(self, seq: int, said_at: str) -> bool:
        """Take a number of the feed: False for one that was taken before, or is older than all that are remembered.

        Numbers may come a little out of order. One of before the feed was opened is no replay, as none is asked for,
        and neither is one that was taken of another moment: the server has begun to count anew.
        """
        if seq in self._taken:
            if self._taken[seq] == said_at:
                return False
            self._anew(seq)
        elif seq <= self._base:
            self._anew(seq)
        elif len(self._taken) == TAKEN and seq < next(iter(self._taken)):
            return False
        self.cursor = max(self.cursor, seq)
        self._taken[seq] = said_at
        if len(self._taken) > TAKEN:
            self._taken.popitem(last=False)
        return True

    def _anew(self, seq: int) -> None:
        self.opened(seq - 1)
        self.wants.add((Want.ALL, ""))

    def _event(self, session: Session, kind: str, event: Json, at: int | None) -> None:
        match kind:
            case "execution_started":
                session.moves += 1
                self._began(session, text(event, "run_id"))
                self.wants.add((Want.READ, session.id))
            case "complete" | "cancelled" | "error":
                session.moves += 1
                words = text(event, "message") or "the run failed"
                interrupted = kind == "cancelled" or words == _INTERRUPTED
                if kind == "complete":
                    self._over(session, DONE | {"suspended"})
                else:
                    self._over(session, CANCELLED if interrupted else FAILED)
                    self._ended_badly(session, words, at, interrupted=interrupted)
            case "need_clarification" | "tool_approval_requested":
                session.moves += 1
                if kind == "tool_approval_requested" and (call := text(event, "tool_call_id")):
                    session.permission_calls.add(call)
                self.wants.add((Want.READ, session.id))
            case "message_appended":
                self._said(session, event)
            case "session_history_committed":
                if session.read:
                    self.wants.add((Want.PAST, session.id))
            case "session_cleared":
                session.known.clear()
                session.cursor = None
                self._mirror.emit(session.id, Notice(at=0, code="cleared", text="its conversation was emptied"))
                self.wants.add((Want.READ, session.id))
            case "sub_agent_started" | "sub_agent_completed":
                self.wants |= {(Want.READ, session.id), (Want.READ, text(event, "child_session_id") or session.id)}
                self._child_failed(session, event)
            case "child_approval_changed":
                self.gates.changed(event)
            case "task_list_updated" | "task_list_item_progress" if session.read and not session.channel:
                self.talk.take(session, event)
            case _ if kind.startswith("session_"):
                self.wants.add((Want.READ, session.id))
            case _:
                pass
        if session.id in self.sessions:
            self.show(session)

    def channel(self, id: str, event: Json) -> None:
        """An event of a session's own channel."""
        session = self.sessions.get(id)
        if session is None:
            return
        kind = text(event, "type") or ""
        if kind == "sub_agent_event":
            # Older servers tell a parent all that its children tell. What those ask may be told here alone: a child's
            # own channel is opened when the child is known.
            event = part(event, "event")
            if (text(event, "type") or "").startswith("child_approval_"):
                self.gates.changed(event, parent=id)
            return
        if kind == "execution_started":
            session.channel_run, session.quiet, session.partial = text(event, "run_id"), False, False
        if kind in ("child_approval_requested", "child_approval_changed"):
            self.gates.changed(event, parent=id)
        elif kind == "message_appended":
            self._said(session, event)
        elif session.read and self.talk.take(session, event):
            self.wants.add((Want.RESULTS, id))
        if kind in ("complete", "cancelled", "error"):
            session.quiet = True
        if kind not in ("token", "reasoning_token", "tool_token"):
            self.show(session)

    def channel_over(self, id: str) -> None:
        """A session's channel has ended: it has to be opened anew for the next run."""
        session = self.sessions.get(id)
        if session is not None:
            session.channel, session.quiet = False, True
            self.talk.end(session, cut=False)
            if session.run is not None and session.run != session.channel_run:
                self._follow(session)
            self.show(session)

    def gap(self, id: str, skipped: int) -> None:
        """Events of a session's channel are lost for good."""
        session = self.sessions.get(id)
        if session is not None and skipped:
            session.moves += 1
            self.talk.lost(session)
            words = f"{skipped} of its live events were lost on the way; what is stored is read again"
            self._mirror.emit(id, Notice(at=0, level=Level.WARNING, code="gap", text=words))
            self.wants |= {(Want.READ, id), (Want.PAST, id), (Want.TASKS, id)}

    def broke(self, id: str) -> None:
        """A session's channel broke off and is opened anew: nobody says what was lost."""
        session = self.sessions.get(id)
        if session is not None:
            self.talk.lost(session)
            session.partial = True
            self.wants |= {(Want.READ, id), (Want.PAST, id)}

    def reset(self, seq: int) -> None:
        """The feed goes on at another place: what it told before counts no more."""
        self.cursor, self._base = seq, seq - 1
        self.wants.add((Want.ALL, ""))

    def disconnected(self) -> None:
        """No channel is open any more."""
        for session in self.sessions.values():
            session.channel = False
            self.talk.lost(session)
        self.asking.forget_times()

    # --- what follows

    def _began(self, session: Session, run: str | None) -> None:
        if run is not None and run != session.run:
            session.run, session.interrupting, session.settling = run, None, False
            for id in list(session.unread_mail):
                self.taken_up(session, id)
        self._follow(session)

    def _follow(self, session: Session) -> None:
        """A run goes on: what was said before it comes first, then its channel."""
        if not session.channel:
            self.wants.add((Want.CHANNEL, session.id))

    def wants_past(self, session: Session) -> bool:
        """Has its history to be read before its channel is opened?"""
        return not session.read and (self._follow_all or session.watched)

    def _over(self, session: Session, expects: frozenset[str] | None = None) -> None:
        session.expects = expects
        session.run, session.interrupting, session.settling, session.stale = None, None, True, True
        self.wants.add((Want.SETTLE, session.id))
        if session.read:
            self.wants.add((Want.PAST, session.id))

    def _ended_badly(self, session: Session, words: str, at: int | None, *, interrupted: bool) -> None:
        code, level = ("interrupted", Level.INFO) if interrupted else ("failed", Level.ERROR)
        said = "the run was interrupted" if interrupted else words
        self._mirror.emit(session.id, Notice(at=at or 0, level=level, code=code, text=said))

    def _child_failed(self, session: Session, event: Json) -> None:
        if text(event, "status") not in (None, "completed", "skipped", *CANCELLED):
            child = text(event, "child_session_id") or "?"
            words = f"its child {child} failed: {text(event, 'error') or text(event, 'status')}"
            key = f"child_failed/{child}/{text(event, 'error')}"
            self._mirror.emit(session.id, Notice(at=0, level=Level.ERROR, code="child", text=words, key=key))

    def _said(self, session: Session, event: Json) -> None:
        """A message was added to the conversation."""
        id, said = text(event, "message_id") or "", text(event, "content") or ""
        if id not in session.refs:
            # Older servers do not say at once which id a message got.
            sent = next((known for known, words in session.unread_mail.items() if words == said), None)
            if sent is not None:
                session.refs[id] = session.refs[sent]
        if id in session.unread_mail:
            self.taken_up(session, id)
        key = f"m/{id}"
        if session.read and key not in session.known:
            session.known.add(key)
            role = history.speaker(said, ours=id in session.refs)
            at = millis(event, "created_at") or 0
            self._mirror.emit(session.id, Message(at=at, role=role, text=said, key=key))

    def taken_up(self, session: Session, id: str) -> None:
        """A message that was sent from here is in a run now."""
        if id in session.sending:
            session.sending[id] = True
        elif session.unread_mail.pop(id, None) is not None:
            ref = session.ref(id)
            self._mirror.emit(session.id, Mail(at=0, ref=ref, state=MailState.CONSUMED, key=f"mail/{id}/consumed"))

    # --- requests

    def decided(self, session: Session, decision: Decision, run: str | None) -> None:
        """What the session waited for has this decision, and `run` goes on with it; older answers of the server count
        no more."""
        session.moves += 1
        session.info = {**session.info, "has_pending_question": False}
        self.asking.ends(session, "", decision)
        self._began(session, run)
        self.wants.add((Want.READ, session.id))
        self.show(session)

    def elsewhere(self, session: Session, choice: history.Choice | None) -> Decision | None:
        """What the session waited for was decided by somebody else, or is asked no more; the decision, where known."""
        session.moves += 1
        session.info = {**session.info, "has_pending_question": False}
        decision = self.asking.ended_elsewhere(session, choice)
        self.show(session)
        return decision

    def interrupting(self, session: Session, by: str) -> None:
        """The server has taken it up to end the session's run, which goes on until its tool gives way."""
        if session.run is not None:
            session.interrupting = (by, self._mirror.now())
            self.show(session)

    def tree(self, root: str) -> list[str]:
        """A session and all that are below it."""
        found = [root]
        for id in found:
            found += [one.id for one in self.sessions.values() if text(one.info, "parent_session_id") == id]
        return found

    # --- what is shown

    def show(self, session: Session) -> None:
        """Tell the mirror how the session stands."""
        parent = text(session.info, "parent_session_id")
        fields = fields_of(session, parent if parent in self.sessions else None, self._mirror.now())
        self._mirror.put(session.id, capabilities=offers.OFFERS, traits=offers.TRAITS, **fields)
