"""A host that says exactly what a test scripts: protocol frames, through the intake, into a fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, Intent, RequestKey, Seen, SessionKey
from console.fleet.gate import Gated, gate
from console.fleet.state import Request, Session, Trail
from console.intake import Intake
from watchfloor.protocol import events as e
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.text import clean_line
from watchfloor.words import Contact, Lifecycle, OptionKind, OutcomeKind, Primitive, RequestKind, RequestState, Role

SOURCE = "here"
FULL: Mapping[str, Any] = {
    "send": {"priorities": ["normal", "interrupt", "queue"]},
    "pause": {"interrupt": True},
    "resume": {},
    "interrupt": {},
    "stop": {"kill": True},
    "reseed": {"modes": ["clear", "compact"]},
    "fork": {},
    "budget": {"tokens": True, "turns": True},
    "approve": {},
    "answer": {},
    "notify": {},
    "delete": {},
    "act": {"acts": [{"id": "archive", "label": "Archive", "effect": "hides it", "danger": True}]},
}

ALLOW = m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW)
ALWAYS = m.Option(id="always", label="Always", kind=OptionKind.ALLOW, scope="session")  # type: ignore[arg-type]
DENY = m.Option(id="no", label="Deny", kind=OptionKind.DENY)


class ScriptedHost:
    """`now` is both clocks unless `ahead` sets the host's apart."""

    def __init__(self, *, name: str = SOURCE, role: Role = Role.OPERATOR, ahead: int = 0, live: bool = True) -> None:
        self.name = name
        self.now = 1_000_000
        self.ahead = ahead
        self.fleet = Fleet()
        self.intake = Intake(name, lambda: self.now)
        self.seqs: dict[str, int] = {}
        self.pos = 0
        self.profiles = 0
        self.asked: dict[str, m.RequestModel] = {}
        if live:
            self.contact(Contact.LIVE)
            self.welcome(role)

    # --- what the host says ----------------------------------------------------------------

    @property
    def there(self) -> int:
        """The host's own time."""
        return self.now + self.ahead

    def tell(self, *frames: f.HostFrame | f.UnknownFrame) -> Changes:
        facts = [fact for frame in frames for fact in self.intake.frame(frame)]
        return self.fleet.apply(facts, self.now)

    def contact(self, contact: Contact, why: str = "", tries: int = 0) -> Changes:
        return self.noticed(contact, 0, why, tries)

    def noticed(self, contact: Contact, late_ms: int, why: str = "", tries: int = 0) -> Changes:
        """Contact has been this for a while when it is noticed."""
        fact = ContactFact(self.name, contact, self.now - late_ms, clean_line(why), tries)
        return self.fleet.apply([fact], self.now)

    def welcome(self, role: Role = Role.OPERATOR, instance: str = "i1") -> Changes:
        host = f.HostInfo(name="host", version="1", instance=instance)
        return self.tell(
            f.Welcome(
                protocol="watchfloor.v1",
                host=host,
                principal="ops",
                role=role,
                pos=self.pos,
                heartbeat_s=15.0,
                now=self.there,
            )
        )

    def profile(self, capabilities: Mapping[str, Any] = FULL, **traits: Any) -> str:
        self.profiles += 1
        id = f"p{self.profiles}"
        profile = m.Profile(
            capabilities=m.Capabilities.model_validate(dict(capabilities)), traits=m.Traits.model_validate(traits)
        )
        self.tell(f.Profiles(profiles={id: profile}))
        return id

    def session(
        self,
        id: str = "s1",
        capabilities: Mapping[str, Any] = FULL,
        traits: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> SessionKey:
        profile = self.profile(capabilities, **(traits or {}))
        fields = {"name": id, "lifecycle": "running", "attempt": 1, "turn": "t1", "epoch": "e1", "profile": profile}
        self.summary(id, **{**fields, **rest})
        return SessionKey(self.name, id)

    def summary(self, id: str = "s1", **fields: Any) -> Changes:
        return self.tell(f.Sessions(sessions=(m.Summary.model_validate({"id": id, **fields}),)))

    def events(self, id: str, *events: Mapping[str, Any], epoch: str = "e1") -> Changes:
        """Events by kind and fields; they are numbered here."""
        made: list[Any] = []
        for event in events:
            numbered = {"at": self.there, "attempt": 1, **event}
            if event["kind"] != "delta":
                self.seqs[id] = self.seqs.get(id, 0) + 1
                self.pos += 1
                numbered = {"seq": self.seqs[id], "pos": self.pos, **numbered}
            made.append(_event(numbered))
        return self.tell(f.Events(session=id, epoch=epoch, events=made))

    def ask(
        self,
        id: str = "r1",
        session: str = "s1",
        *,
        text: str = "rm -rf build",
        call: str | None = "c1",
        options: Sequence[m.Option] = (ALLOW, ALWAYS, DENY),
        attempt: int | None = 1,
        listed: bool = True,
        **rest: Any,
    ) -> RequestKey:
        action = m.Action(tool="shell", text=text, call=call, complete=rest.pop("complete", True))
        subject = m.Subject(
            session=session,
            attempt=attempt,
            id=id,
            kind=RequestKind.APPROVAL,
            actions=(action,),
            options=tuple(options),
        )
        return self.open(m.RequestModel.ask(subject, **{"asked_at": self.there, **rest}), listed=listed)

    def question(
        self,
        id: str = "q1",
        session: str = "s1",
        *,
        fields: Sequence[m.FormField] = (),
        options: Sequence[m.Option] = (),
    ) -> RequestKey:
        subject = m.Subject(
            session=session, attempt=1, id=id, kind=RequestKind.QUESTION, fields=tuple(fields), options=tuple(options)
        )
        return self.open(m.RequestModel.ask(subject, asked_at=self.there))

    def open(self, request: m.RequestModel, *, listed: bool = True) -> RequestKey:
        subject = request.subject
        session, id = str(subject["session"]), str(subject["id"])
        self.asked[id] = request
        if listed:
            self.list_requests(session)
        self.tell(f.RequestFrame(session=session, request=request))
        return RequestKey(self.name, session, id)

    def list_requests(self, session: str) -> None:
        refs = [
            m.RequestRef(
                id=id, kind=RequestKind(str(r.subject["kind"])), asked_at=r.asked_at, digest=r.digest
            )
            for id, r in self.asked.items()
            if r.subject["session"] == session and r.state is RequestState.OPEN
        ]  # fmt: skip
        self.summary(session, requests=refs)

    def decide(self, id: str, option: str | None = "yes", by: str = "ann", state: str = "resolved") -> Changes:
        """The host ends a request and says so by frame, summary and event."""
        request = self.asked[id]
        session = str(request.subject["session"])
        kinds = {o.id: o.kind for o in request.read().options}
        decision = (
            m.Decision(option=option, kind=kinds.get(option or ""), by=by, at=self.there)
            if state == "resolved"
            else None
        )
        ended = request.model_copy(update={"state": RequestState(state), "decision": decision})
        self.asked[id] = ended
        self.list_requests(session)
        return self.tell(f.RequestFrame(session=session, request=ended))

    def outcome(self, id: str, outcome: OutcomeKind = OutcomeKind.APPLIED, **rest: Any) -> Changes:
        return self.tell(f.Outcome(id=id, outcome=outcome, at=self.there, **rest))

    # --- what an operator does -------------------------------------------------------------

    def intent(self, primitive: Primitive, session: str = "s1", **arguments: Any) -> Intent:
        fields = {"id": f"cmd-{primitive.value}", "by": "ops", **arguments}
        if primitive is Primitive.SEND:
            fields.setdefault("text", "hello")
        return Intent(primitive=primitive, target=SessionKey(self.name, session), **fields)

    def decision(self, key: RequestKey, option: str | None = "yes", **arguments: Any) -> Intent:
        """A decision on what stands on the card now, by somebody who has read it for a second."""
        self.now += 1_000
        request = self.fleet.requests[key]
        primitive = Primitive.APPROVE if request.kind is RequestKind.APPROVAL else Primitive.ANSWER
        arguments.setdefault("seen", Seen(request.digest, self.now - 1_000, True))
        return self.intent(primitive, key.session, request=key.request, option=option, **arguments)

    def send(self, primitive: Primitive, session: str = "s1", **arguments: Any) -> Trail:
        """An intervention through the gate and out."""
        return self.go(self.intent(primitive, session, **arguments))

    def go(self, intent: Intent) -> Trail:
        gated = gate(self.fleet, intent, self.now)
        assert isinstance(gated, Gated), gated
        self.fleet.requested(intent, self.now)
        self.fleet.sent(intent.id, self.now)
        return self.fleet.trails[intent.id]

    def wait(self, ms: int) -> Changes:
        self.now += ms
        return self.fleet.tick(self.now)

    # --- what the console then knows -------------------------------------------------------

    def at(self, session: str = "s1") -> Session:
        return self.fleet.sessions[SessionKey(self.name, session)]

    def request(self, key: RequestKey) -> Request:
        return self.fleet.requests[key]


_KINDS = {kind.model_fields["kind"].default: kind for kind in e.EVENT_TYPES}


def _event(fields: Mapping[str, Any]) -> e.Event:
    return _KINDS[fields["kind"]].model_validate(fields)


__all__ = ["ALLOW", "ALWAYS", "DENY", "FULL", "SOURCE", "Lifecycle", "ScriptedHost"]
