"""The gate, rule by rule. Every way in passes it, so what is refused here can happen nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.fleet.decisions.decide import TOO_LARGE, option_deny, option_once
from console.fleet.facts import Intent, Refusal, RequestFact, RequestKey, Seen
from console.fleet.gate import Allowed, Gated, Greyed, Hidden, can, gate
from console.intake.bounds import KEEP_ACTION
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, OutcomeKind, Primitive, Priority, ReseedMode, Role


@pytest.fixture
def host() -> ScriptedHost:
    made = ScriptedHost()
    made.session("s1")
    return made


def passed(host: ScriptedHost, intent: Intent, **options: Any) -> Gated:
    answer = gate(host.fleet, intent, host.now, **options)
    assert isinstance(answer, Gated), answer
    return answer


def refused(host: ScriptedHost, intent: Intent, **options: Any) -> tuple[OutcomeKind, str]:
    answer = gate(host.fleet, intent, host.now, **options)
    assert isinstance(answer, Refusal), answer
    return answer.outcome, answer.reason


def may(host: ScriptedHost, primitive: Primitive, **options: Any) -> Allowed | Greyed | Hidden:
    return can(host.fleet, host.at().key, primitive, host.now, **options)


PLAIN = (Primitive.PAUSE, Primitive.RESUME, Primitive.INTERRUPT, Primitive.STOP, Primitive.SEND, Primitive.FORK)


# --- target --------------------------------------------------------------------------------


def test_an_unknown_session(host: ScriptedHost) -> None:
    assert refused(host, host.intent(Primitive.PAUSE, "s9")) == (OutcomeKind.STALE_TARGET, "there is no session s9")
    hostile = host.intent(Primitive.PAUSE, "s\x1b]52;c;x\x07")
    assert refused(host, hostile)[1] == "there is no session s␛]52;c;x␇"


def test_a_session_known_by_name_only(host: ScriptedHost) -> None:
    host.summary("kid", parent="boss")
    assert refused(host, host.intent(Primitive.PAUSE, "boss"))[0] is OutcomeKind.STALE_TARGET
    assert can(host.fleet, host.at("boss").key, Primitive.PAUSE, host.now) == Hidden()


def test_what_passes_names_what_was_shown(host: ScriptedHost) -> None:
    gated = passed(host, host.intent(Primitive.INTERRUPT))
    assert (gated.target, gated.attempt, gated.turn) == (host.at().key, 1, "t1")
    assert passed(host, host.intent(Primitive.SEND)).turn == "t1"
    assert passed(host, host.intent(Primitive.PAUSE)).turn is None


def test_another_attempt_runs(host: ScriptedHost) -> None:
    assert passed(host, host.intent(Primitive.PAUSE, attempt=1)).attempt == 1
    host.summary("s1", attempt=2)
    outcome, reason = refused(host, host.intent(Primitive.PAUSE, attempt=1))
    assert (outcome, reason) == (OutcomeKind.STALE_TARGET, "attempt 1 is not the one that runs: 2 does")


def test_attempts_are_never_compared_where_none_are_counted(host: ScriptedHost) -> None:
    host.summary("s1", attempt=None)
    assert passed(host, host.intent(Primitive.PAUSE, attempt=7)).attempt is None


@pytest.mark.parametrize("primitive", [Primitive.INTERRUPT, Primitive.SEND])
def test_another_turn_runs(host: ScriptedHost, primitive: Primitive) -> None:
    host.summary("s1", turn="t2")
    outcome, reason = refused(host, host.intent(primitive, turn="t1"))
    assert (outcome, reason) == (OutcomeKind.STALE_TARGET, "turn t1 is over: turn t2 runs")
    host.summary("s1", turn=None)
    assert refused(host, host.intent(primitive, turn="t1"))[1] == "turn t1 is over: no turn runs"


# --- capability ----------------------------------------------------------------------------


@pytest.mark.parametrize("primitive", list(Primitive))
def test_the_empty_set_allows_nothing_and_shows_nothing(primitive: Primitive) -> None:
    host = ScriptedHost()
    host.session("s1", capabilities={})
    assert refused(host, host.intent(primitive)) == (OutcomeKind.CAPABILITY_NOT_SUPPORTED, "observe only")
    assert may(host, primitive) == Hidden()


def test_what_is_not_advertised_says_what_is() -> None:
    host = ScriptedHost()
    host.session("s1", capabilities={"pause": {}, "resume": {}})
    outcome, reason = refused(host, host.intent(Primitive.STOP))
    assert (outcome, reason) == (
        OutcomeKind.CAPABILITY_NOT_SUPPORTED,
        "the session does not offer stop; it offers pause, resume",
    )
    assert may(host, Primitive.STOP) == Hidden()
    assert may(host, Primitive.PAUSE) == Allowed()


def test_a_primitive_that_nobody_knows_grants_nothing() -> None:
    host = ScriptedHost()
    host.session("s1", capabilities={"levitate": {}, "pause": {}})
    profile = host.fleet.profile(host.at())
    assert profile is not None
    assert profile.primitives == {Primitive.PAUSE}
    assert list(profile.unknown) == ["levitate"]


def test_while_the_source_has_not_said_nothing_is_allowed() -> None:
    host = ScriptedHost()
    host.summary("s1", name="s1")
    assert refused(host, host.intent(Primitive.PAUSE))[0] is OutcomeKind.CAPABILITY_NOT_SUPPORTED


BARE = {"send": {}, "pause": {}, "stop": {}, "reseed": {"modes": ["compact"]}, "budget": {"turns": True}, "act": {}}


@pytest.mark.parametrize(
    ("primitive", "arguments"),
    [
        (Primitive.SEND, {"priority": Priority.QUEUE}),
        (Primitive.SEND, {"priority": Priority.INTERRUPT}),
        (Primitive.PAUSE, {"interrupt": True}),
        (Primitive.STOP, {"kill": True}),
        (Primitive.RESEED, {"mode": ReseedMode.CLEAR}),
        (Primitive.RESEED, {"mode": None}),
        (Primitive.BUDGET, {"extra": {"tokens": 5}}),
        (Primitive.ACT, {"extra": {"act": "archive"}}),
    ],
)
def test_an_option_that_is_not_advertised(primitive: Primitive, arguments: dict[str, Any]) -> None:
    host = ScriptedHost()
    host.session("s1", capabilities=BARE)
    assert refused(host, host.intent(primitive, **arguments))[0] is OutcomeKind.CAPABILITY_NOT_SUPPORTED


def test_options_that_are_advertised(host: ScriptedHost) -> None:
    for priority in Priority:
        assert passed(host, host.intent(Primitive.SEND, priority=priority)).priority is priority
    passed(host, host.intent(Primitive.PAUSE, interrupt=True))
    passed(host, host.intent(Primitive.STOP, kill=True))
    passed(host, host.intent(Primitive.RESEED, mode=ReseedMode.COMPACT))
    passed(host, host.intent(Primitive.BUDGET, extra={"turns": 3}))


def test_a_budget_of_nothing_and_a_message_of_nothing(host: ScriptedHost) -> None:
    assert refused(host, host.intent(Primitive.BUDGET))[0] is OutcomeKind.INVALID
    assert refused(host, host.intent(Primitive.SEND, text=" \n"))[0] is OutcomeKind.INVALID


# --- blocked, contact, permission ----------------------------------------------------------


def test_blocked_is_said_by_the_source(host: ScriptedHost) -> None:
    host.summary("s1", blocked={"pause": "the attempt is completed", "levitate": "no"})
    assert refused(host, host.intent(Primitive.PAUSE)) == (OutcomeKind.INVALID, "the attempt is completed")
    assert may(host, Primitive.PAUSE) == Greyed("the attempt is completed")
    host.summary("s1", blocked={})
    passed(host, host.intent(Primitive.PAUSE))


def test_a_state_alone_blocks_nothing(host: ScriptedHost) -> None:
    host.summary("s1", lifecycle="completed")
    for primitive in PLAIN:
        passed(host, host.intent(primitive))


def test_what_a_control_will_do_is_said_by_the_source(host: ScriptedHost) -> None:
    host.summary("s1", controls={"resume": "Retry (attempt 3)"})
    assert may(host, Primitive.RESUME) == Allowed("Retry (attempt 3)")  # type: ignore[arg-type]


@pytest.mark.parametrize("contact", [c for c in Contact if c is not Contact.LIVE])
def test_nothing_leaves_for_a_source_that_is_not_heard(host: ScriptedHost, contact: Contact) -> None:
    host.contact(contact)
    outcome, reason = refused(host, host.intent(Primitive.PAUSE))
    assert outcome is OutcomeKind.UNDELIVERED
    assert "here" in reason
    assert may(host, Primitive.PAUSE) == Greyed(reason)


def test_an_observer_only_watches() -> None:
    host = ScriptedHost(role=Role.OBSERVER)
    host.session("s1")
    outcome, reason = refused(host, host.intent(Primitive.PAUSE))
    assert (outcome, reason) == (OutcomeKind.NOT_PERMITTED, "ops may only watch on here")
    assert may(host, Primitive.PAUSE) == Greyed(reason)


def test_a_read_only_console_only_watches(host: ScriptedHost) -> None:
    for primitive in PLAIN:
        assert refused(host, host.intent(primitive), read_only=True)[0] is OutcomeKind.NOT_PERMITTED
        assert isinstance(may(host, primitive, read_only=True), Greyed)


# --- decisions -----------------------------------------------------------------------------


def test_a_decision_carries_what_was_read(host: ScriptedHost) -> None:
    asked = host.ask()
    gated = passed(host, host.decision(asked))
    assert (gated.request, gated.digest) == (asked, host.asked["r1"].digest)
    assert gated.option is not None
    assert (gated.option.id, gated.attempt) == ("yes", 1)
    assert gated.confirm == ()


def test_no_such_request(host: ScriptedHost) -> None:
    seen = Seen("sha256:x", 0, True)
    intent = host.intent(Primitive.APPROVE, request="r9", option="yes", seen=seen)
    assert refused(host, intent) == (OutcomeKind.STALE_TARGET, "no request r9 is known")
    assert refused(host, replace(intent, request=None))[0] is OutcomeKind.STALE_TARGET


def test_the_loser_is_told_who_was_first(host: ScriptedHost) -> None:
    asked = host.ask()
    intent = host.decision(asked)
    host.decide("r1", "no", by="ann")
    host.now += 14_000
    answer = gate(host.fleet, intent, host.now)
    assert isinstance(answer, Refusal)
    assert (answer.outcome, answer.reason) == (OutcomeKind.ALREADY_DECIDED, "already denied by ann 0:14 ago")
    assert answer.decided is not None
    assert (answer.decided.by, answer.decided.option, answer.decided.kind) == ("ann", "no", OptionKind.DENY)


@pytest.mark.parametrize("state", ["expired", "withdrawn"])
def test_expired_and_withdrawn_are_stale(host: ScriptedHost, state: str) -> None:
    asked = host.ask()
    intent = host.decision(asked)
    host.decide("r1", None, state=state)
    assert refused(host, intent) == (OutcomeKind.STALE_TARGET, f"the request is {state}")


def test_a_request_that_vanished_is_stale(host: ScriptedHost) -> None:
    asked = host.ask()
    intent = host.decision(asked)
    host.summary("s1", requests=[])
    assert refused(host, intent)[0] is OutcomeKind.STALE_TARGET


def test_decided_beats_blocked(host: ScriptedHost) -> None:
    asked = host.ask()
    intent = host.decision(asked)
    host.decide("r1")
    host.summary("s1", blocked={"approve": "no request is open"})
    assert refused(host, intent)[0] is OutcomeKind.ALREADY_DECIDED


def test_a_wrong_digest_makes_a_request_undecidable(host: ScriptedHost) -> None:
    host.ask()
    forged = host.asked["r1"].model_copy(update={"digest": "sha256:0"})
    asked = host.open(forged)
    for option in ("yes", "no"):
        outcome, reason = refused(host, host.decision(asked, option))
        assert (outcome, reason) == (OutcomeKind.INVALID, "undecidable: its digest is not that of its text")


def test_a_subject_that_cannot_be_read_is_undecidable(host: ScriptedHost) -> None:
    host.ask()
    subject = {"session": "s1", "id": "r2", "kind": "approval", "actions": [{"tool": 5}]}
    asked = host.open(m.RequestModel.model_validate({**host.asked["r1"].model_dump(), "subject": subject}))
    outcome, reason = refused(host, host.decision(asked, "yes"))
    assert outcome is OutcomeKind.INVALID
    assert reason.startswith("undecidable: actions.0.tool: ")


def test_a_request_without_its_text_is_undecidable(host: ScriptedHost) -> None:
    ref = {"id": "r1", "kind": "approval", "asked_at": 1, "digest": "sha256:x"}
    host.summary("s1", requests=[ref])
    intent = host.intent(Primitive.APPROVE, request="r1", option="yes", seen=Seen("sha256:x", 0, True))
    assert refused(host, intent) == (OutcomeKind.INVALID, "undecidable: its text has not come yet")


def test_a_request_of_an_attempt_that_is_over(host: ScriptedHost) -> None:
    asked = host.ask()
    host.summary("s1", attempt=2)
    assert refused(host, host.decision(asked))[0] is OutcomeKind.STALE_TARGET


def test_what_was_not_read_is_not_decided(host: ScriptedHost) -> None:
    asked = host.ask()
    other = Seen("sha256:other", 0, True)
    assert refused(host, host.decision(asked, seen=other))[0] is OutcomeKind.STALE_TARGET
    # Denying is exempt from arming, never from being about what was read.
    assert refused(host, host.decision(asked, "no", seen=other))[0] is OutcomeKind.STALE_TARGET
    assert refused(host, host.decision(asked, seen=None))[0] is OutcomeKind.INVALID


def test_approving_is_disarmed_at_first_and_denying_is_not(host: ScriptedHost) -> None:
    asked = host.ask()
    host.now += 5_000
    digest = host.request(asked).digest
    fresh = Seen(digest, host.now + 1_000 - 100, True)
    assert refused(host, host.decision(asked, seen=fresh)) == (OutcomeKind.REFUSED, "armed in 0.2 s")
    host.now -= 1_000
    passed(host, host.decision(asked, "no", seen=fresh))
    host.now += 200
    host.now -= 1_000
    passed(host, host.decision(asked, seen=fresh))


def test_a_change_on_the_card_disarms_again(host: ScriptedHost) -> None:
    asked = host.ask()
    host.now += 5_000
    changed = host.asked["r1"].model_copy(update={"about": "harmless"})
    host.open(changed)
    intent = host.intent(
        Primitive.APPROVE, request="r1", option="yes", seen=Seen(host.request(asked).digest, host.now - 4_000, True)
    )
    assert refused(host, intent)[0] is OutcomeKind.REFUSED
    host.now += 300
    passed(host, intent)


def test_a_digest_given_on_the_command_line_needs_no_arming(host: ScriptedHost) -> None:
    asked = host.ask()
    seen = Seen(host.request(asked).digest, 0, True)
    passed(host, host.intent(Primitive.APPROVE, request="r1", option="yes", seen=seen))


def test_not_before_the_end_was_seen(host: ScriptedHost) -> None:
    asked = host.ask()
    host.now += 5_000
    seen = Seen(host.request(asked).digest, host.now - 2_000, False)
    outcome, reason = refused(host, host.decision(asked, seen=seen))
    assert (outcome, reason) == (OutcomeKind.REFUSED, "not before you have seen the end")
    passed(host, host.decision(asked, "no", seen=seen))


def test_only_what_is_offered(host: ScriptedHost) -> None:
    asked = host.ask(options=(ALLOW, DENY))
    outcome, reason = refused(host, host.decision(asked, "maybe"))
    assert (outcome, reason) == (OutcomeKind.INVALID, "maybe is not an option; there are: yes, no")
    assert refused(host, host.decision(asked, None))[0] is OutcomeKind.INVALID


def test_approving_answers_no_question(host: ScriptedHost) -> None:
    asked = host.question(options=[m.Option(id="a", label="A", kind=OptionKind.ANSWER)])
    intent = replace(host.decision(asked, "a"), primitive=Primitive.APPROVE)
    assert refused(host, intent) == (OutcomeKind.INVALID, "the request is a question, not an approval")
    passed(host, host.decision(asked, "a"))


def test_an_answer_is_no_approval(host: ScriptedHost) -> None:
    asked = host.ask()
    intent = replace(host.decision(asked, "yes"), primitive=Primitive.ANSWER)
    assert refused(host, intent)[0] is OutcomeKind.INVALID


def test_what_the_source_wants_confirmed_is_confirmed(host: ScriptedHost) -> None:
    risky = m.Option(id="all", label="Allow all", kind=OptionKind.ALLOW, confirm=True, note="runs without asking")
    asked = host.ask(options=(risky, DENY))
    assert passed(host, host.decision(asked, "all")).confirm == ("runs without asking",)
    assert passed(host, host.decision(asked, "no")).confirm == ()


def test_a_part_of_an_action_is_confirmed(host: ScriptedHost) -> None:
    asked = host.ask(complete=False)
    assert "only a part" in passed(host, host.decision(asked)).confirm[0]
    assert passed(host, host.decision(asked, "no")).confirm == ()


def test_single_keys_never_widen(host: ScriptedHost) -> None:
    never = m.Option(id="never", label="Never", kind=OptionKind.DENY, persists=True)
    turn = m.Option(id="turn", label="Not this turn", kind=OptionKind.DENY, scope="turn")  # type: ignore[arg-type]
    wide = host.request(host.ask("r1", options=(ALWAYS, never))).fact
    assert wide is not None
    assert (option_once(wide), option_deny(wide)) == (None, None)
    narrow = host.request(host.ask("r2", options=(ALWAYS, never, turn, DENY, ALLOW))).fact
    assert narrow is not None
    once, deny = option_once(narrow), option_deny(narrow)
    assert once is not None
    assert deny is not None
    assert (once.id, deny.id) == ("yes", "no")


# --- answers -------------------------------------------------------------------------------

FIELDS = [
    m.FormField.model_validate({"name": "branch", "type": "choice", "choices": [{"value": "m", "label": "main"}]}),
    m.FormField.model_validate({"name": "why", "type": "text", "required": False}),
    m.FormField.model_validate({"name": "key", "type": "secret", "required": False}),
    m.FormField.model_validate({"name": "n", "type": "number", "required": False}),
    m.FormField.model_validate({"name": "ok", "type": "bool", "required": False}),
    m.FormField.model_validate(
        {"name": "some", "type": "many", "required": False, "choices": [{"value": "x", "label": "x"}]}
    ),
]


@pytest.mark.parametrize(
    "fields",
    [
        {"branch": "m"},
        {"branch": "m", "why": "it is", "n": 1.5, "ok": False, "some": ["x"], "key": "s"},
        {"branch": "m", "some": []},
    ],
)
def test_answers_that_fit(host: ScriptedHost, fields: dict[str, Any]) -> None:
    asked = host.question(fields=FIELDS)
    passed(host, host.decision(asked, None, fields=fields))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({}, "branch"),
        ({"branch": "other"}, "branch"),
        ({"branch": ["m"]}, "branch"),
        ({"branch": "m", "extra": 1}, "extra"),
        ({"branch": "m", "n": "1"}, "n"),
        ({"branch": "m", "n": True}, "n"),
        ({"branch": "m", "ok": "yes"}, "ok"),
        ({"branch": "m", "some": ["y"]}, "some"),
        ({"branch": "m", "some": "x"}, "some"),
        ({"branch": "m", "why": 5}, "why"),
    ],
)
def test_answers_that_do_not_fit(host: ScriptedHost, fields: dict[str, Any], where: str) -> None:
    asked = host.question(fields=FIELDS)
    outcome, reason = refused(host, host.decision(asked, None, fields=fields))
    assert outcome is OutcomeKind.INVALID
    assert where in reason


def test_a_secret_is_never_repeated(host: ScriptedHost) -> None:
    asked = host.question(fields=FIELDS)
    reason = refused(host, host.decision(asked, None, fields={"branch": "hunter2", "key": "hunter2", "n": "hunter2"}))[
        1
    ]
    assert "hunter2" not in reason


def test_an_answer_is_one_thing(host: ScriptedHost) -> None:
    asked = host.question(fields=FIELDS[1:2])
    passed(host, host.decision(asked, None, text="because"))
    assert refused(host, host.decision(asked, None))[0] is OutcomeKind.INVALID
    assert refused(host, host.decision(asked, None, text="a", fields={"why": "a"}))[0] is OutcomeKind.INVALID


def test_free_text_only_where_it_is_taken(host: ScriptedHost) -> None:
    strict = host.question("q1", fields=FIELDS[:1])
    assert refused(host, host.decision(strict, None, text="main"))[0] is OutcomeKind.INVALID
    free = m.FormField.model_validate({**FIELDS[0].model_dump(), "free_text": True})
    loose = host.question("q2", fields=[free])
    passed(host, host.decision(loose, None, text="another"))
    passed(host, host.decision(loose, None, fields={"branch": "another"}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (m.FormField.model_validate({"name": "why", "type": "text", "label": "Why"}), " \n"),
        (m.FormField.model_validate({"name": "why", "type": "text", "label": "Why"}), ""),
        (m.FormField.model_validate({"name": "why", "type": "secret", "label": "Why"}), ""),
        (
            m.FormField.model_validate(
                {"name": "why", "type": "many", "label": "Why", "choices": [{"value": "a", "label": "A"}]}
            ),
            [],
        ),
    ],
)
def test_an_answer_that_is_required_says_something(host: ScriptedHost, field: m.FormField, value: Any) -> None:
    asked = host.question("q1", fields=[field])
    assert refused(host, host.decision(asked, None, fields={"why": value})) == (
        OutcomeKind.INVALID,
        "Why: an answer is required",
    )
    optional = host.question("q2", fields=[field.model_copy(update={"required": False})])
    passed(host, host.decision(optional, None, fields={"why": value}))


def test_a_text_for_a_field_that_is_required_says_something(host: ScriptedHost) -> None:
    field = m.FormField.model_validate({"name": "why", "type": "text", "label": "Why"})
    assert refused(host, host.decision(host.question(fields=[field]), None, text="  "))[1] == (
        "Why: an answer is required"
    )
    assert refused(host, host.decision(host.question("q2"), None, text=" "))[1] == "an answer is required"


# --- once only -----------------------------------------------------------------------------


def test_a_request_is_decided_once_from_here(host: ScriptedHost) -> None:
    asked = host.ask()
    first, second = host.decision(asked), host.decision(asked, "no", id="another")
    passed(host, second)
    host.fleet.requested(first, host.now)
    assert refused(host, second) == (
        OutcomeKind.ALREADY_DECIDED,
        "your decision is on its way already: approve on its way already, no word yet",
    )
    host.fleet.sent(first.id, host.now)
    host.wait(12_000)
    assert refused(host, second)[1] == "your decision is on its way already: approve sent 0:12 ago, no word yet"
    host.outcome(first.id)
    assert refused(host, second)[1].endswith("approve sent 0:12 ago, taken, its effect is not seen yet")
    other = host.ask("r2")
    passed(host, host.decision(other))


def test_a_decision_that_was_not_taken_leaves_room_for_another(host: ScriptedHost) -> None:
    asked = host.ask()
    first = host.decision(asked)
    host.fleet.requested(first, host.now)
    host.outcome(first.id, OutcomeKind.REFUSED)
    passed(host, host.decision(asked, "no", id="another"))


# --- the clock -----------------------------------------------------------------------------


def test_arming_is_counted_by_a_clock_that_is_never_set(host: ScriptedHost) -> None:
    asked = host.ask()
    digest = host.fleet.requests[asked].digest
    decision = host.decision(asked, seen=Seen(digest, 5_000, whole=True))
    assert refused(host, decision, steady=5_100)[1] == "armed in 0.2 s"
    passed(host, decision, steady=5_300)
    host.now -= 3_600_000
    passed(host, decision, steady=5_300)


# --- confirmations that are not traits -----------------------------------------------------


def test_stop_is_confirmed_and_names_its_children(host: ScriptedHost) -> None:
    assert passed(host, host.intent(Primitive.STOP)).confirm == ("s1 is stopped",)
    assert passed(host, host.intent(Primitive.STOP, kill=True)).confirm == ("s1 is killed at once",)
    host.session("kid", parent="s1")
    host.session("done", parent="s1", lifecycle="completed")
    assert passed(host, host.intent(Primitive.STOP)).confirm == ("s1 is stopped", "its child may live on")


@pytest.mark.parametrize(
    ("primitive", "arguments", "asks"),
    [
        (Primitive.RESEED, {"mode": ReseedMode.CLEAR}, True),
        (Primitive.RESEED, {"mode": ReseedMode.COMPACT}, True),
        (Primitive.DELETE, {}, True),
        (Primitive.ACT, {"extra": {"act": "archive"}}, True),
        (Primitive.PAUSE, {}, False),
        (Primitive.INTERRUPT, {}, False),
        (Primitive.SEND, {}, False),
    ],
)
def test_what_is_confirmed(host: ScriptedHost, primitive: Primitive, arguments: dict[str, Any], asks: bool) -> None:
    assert bool(passed(host, host.intent(primitive, **arguments)).confirm) is asks


@pytest.mark.parametrize(
    ("mode", "lost"),
    [
        (ReseedMode.CLEAR, ("the agent forgets the whole conversation",)),
        (ReseedMode.REPLACE, ("the agent's conversation is replaced",)),
        (ReseedMode.REWIND, ("the agent forgets that message and all that follows it",)),
        (ReseedMode.COMPACT, ("the agent forgets what the summary leaves out",)),
        (ReseedMode.MODEL, ()),
    ],
)
def test_what_a_reseed_loses_has_to_be_agreed_to(host: ScriptedHost, mode: ReseedMode, lost: tuple[str, ...]) -> None:
    host.session("all", {"reseed": {"modes": [one.value for one in ReseedMode]}}, lifecycle="idle")
    assert passed(host, host.intent(Primitive.RESEED, session="all", mode=mode, to="#1")).confirm == lost


@pytest.mark.parametrize(
    ("wide", "lines"),
    [
        (
            {"persists": True},
            ("Do it: stays in force after this session", "grants: rm -rf", "the source says: careful"),
        ),
        ({"scope": "global"}, ("Do it: everywhere", "grants: rm -rf", "the source says: careful")),
        (
            {"scope": "agent", "persists": True},
            (
                "Do it: for this agent, in all its sessions, stays in force after this session",
                "grants: rm -rf",
                "the source says: careful",
            ),
        ),
        ({"scope": "session"}, ()),
        ({"confirm": True}, ("careful",)),
    ],
)
@pytest.mark.parametrize("kind", [OptionKind.ALLOW, OptionKind.DENY])
def test_what_outlives_the_session_is_confirmed_and_named(
    host: ScriptedHost, wide: dict[str, Any], lines: tuple[str, ...], kind: OptionKind
) -> None:
    option = m.Option.model_validate(
        {"id": "it", "label": "Do it", "kind": kind, "grants": ["rm -rf"], "note": "careful", **wide}
    )
    asked = host.ask(options=[option, ALLOW, DENY])
    # To deny once what was asked to be confirmed is always safe.
    expected = () if kind is OptionKind.DENY and "confirm" in wide else lines
    assert passed(host, host.decision(asked, "it")).confirm == expected


# --- can -----------------------------------------------------------------------------------


def test_approve_and_answer_need_something_to_decide(host: ScriptedHost) -> None:
    assert may(host, Primitive.APPROVE) == Greyed("nothing waits for approval")
    assert may(host, Primitive.ANSWER) == Greyed("no question is open")
    host.ask()
    assert may(host, Primitive.APPROVE) == Allowed()
    assert may(host, Primitive.ANSWER) == Greyed("no question is open")
    host.decide("r1")
    assert may(host, Primitive.APPROVE) == Greyed("nothing waits for approval")


def test_of_what_cannot_be_shown_whole_only_a_denial_is_taken(host: ScriptedHost) -> None:
    asked = host.ask(text="x" * (KEEP_ACTION + 1))
    for option in ("yes", "always"):
        kind, reason = refused(host, host.decision(asked, option))
        assert (kind, reason) == (OutcomeKind.INVALID, TOO_LARGE)
    assert passed(host, host.decision(asked, "no")).option == option_deny(fact_of(host, asked))


def test_what_its_source_cut_is_another_matter(host: ScriptedHost) -> None:
    assert not fact_of(host, host.ask("r1", complete=False)).too_large
    assert fact_of(host, host.ask("r2", text="x" * (KEEP_ACTION + 1), complete=False)).too_large


def fact_of(host: ScriptedHost, key: RequestKey) -> RequestFact:
    fact = host.request(key).fact
    assert fact is not None
    return fact
