"""The card: the exact action, its doubts, and only the keys that exist."""

from __future__ import annotations

from console.fleet.facts import RequestKey, Seen
from console.fleet.views.card import Card, card
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from tests.unit.fleet.viewing import KEYS, card_of
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, Scope


def choices(made: Card) -> list[tuple[str, str, bool]]:
    return [(option.key, option.label, option.enabled) for option in made.options]


def test_a_card(host: ScriptedHost) -> None:
    host.session("boss", name="deploy-eu")
    host.session("s1", name="migrate", parent="boss")
    asked = host.ask(
        text="rm -rf build\nmake migrate", about="clean rebuild, safe", deadline=host.now + 90_000, at_deadline="no"
    )
    host.now += 14_000
    made = card_of(host, asked)
    assert made.title[0] == "1 of 1  deploy-eu > migrate"
    assert made.title[1].endswith("waiting 0:14  attempt 1")
    assert (made.actions[0].lines, made.actions[0].size) == (("rm -rf build", "make migrate"), "2 lines, 25 chars")
    assert made.description == ("clean rebuild, safe",)
    assert made.deadline.endswith("(in 1:16): Deny")
    assert choices(made) == [
        ("a", "Approve once", True), ("A", "More", True), ("d", "Deny", True), ("D", "Deny with a reason", True),
    ]  # fmt: skip
    assert made.options[1].note == 'allow for this session: "Always"'
    assert (made.digest, made.digest_short) == (host.asked["r1"].digest, made.digest[7:11] + ".." + made.digest[-2:])


def test_keys_that_do_not_exist_are_not_drawn_as_if_they_did(host: ScriptedHost) -> None:
    host.session("s1")
    made = card_of(host, host.ask(options=(ALWAYS,)))
    assert choices(made) == [("a", "Approve once", False), ("A", "More", True), ("d", "Deny", False)]
    assert made.options[2].note == "it offers no option to deny"


def test_many_options_are_counted_and_not_spelled_out_below_the_action(host: ScriptedHost) -> None:
    host.session("s1")
    wide = [
        m.Option(id=f"o{n}", label=f"Always allow {n} " + "and so on " * 20, kind=OptionKind.ALLOW, scope=scope)
        for n, scope in enumerate((Scope.SESSION, Scope.WORKSPACE, Scope.AGENT, Scope.TURN))
    ]
    never = m.Option(id="never", label="Never", kind=OptionKind.DENY, scope=Scope.GLOBAL, persists=True)
    made = card_of(host, host.ask(options=(ALLOW, *wide, never, DENY)))
    (more,) = [option for option in made.options if option.label == "More"]
    assert more.note == (
        "5 options: 4 that allow, 1 that deny; at most everywhere, for good; each is listed with what it grants"
    )
    few = card_of(host, host.ask("r2", options=(ALLOW, *wide[:2], DENY)))
    assert next(option.note for option in few.options if option.label == "More").count("Always allow") == 2


def test_the_words_of_the_source_are_quoted(host: ScriptedHost) -> None:
    host.session("s1")
    tricky = m.Option(id="x", label="Deny (safe)", kind=OptionKind.ALLOW)
    made = card_of(host, host.ask(options=(tricky, DENY)))
    assert made.options[0].label == "Approve once"
    assert made.options[0].note.endswith('; the source calls it "Deny (safe)"')
    upside_down = (
        m.Option(id="x", label="Deny", kind=OptionKind.ALLOW),
        m.Option(id="y", label="Approve once", kind=OptionKind.DENY),
    )
    allows, denies, _ = card_of(host, host.ask("r2", options=upside_down)).options
    assert (allows.label, denies.label) == ("Approve once", "Deny")
    assert allows.note.endswith('; the source calls it "Deny"')
    assert denies.note.endswith('; the source calls it "Approve once"')


def test_arming_is_said(host: ScriptedHost) -> None:
    host.session("s1")
    asked = host.ask()
    digest, since = host.request(asked).digest, host.now
    assert card_of(host, asked).armed == ""
    assert card_of(host, asked, seen=Seen(digest, since, False)).armed == "not before you have seen the end"
    assert card_of(host, asked, seen=Seen(digest, since, True)).armed == "armed in 0.3 s"
    host.now += 300
    assert card_of(host, asked, seen=Seen(digest, since, True)).armed == "armed"
    assert card_of(host, asked, seen=Seen("sha256:other", since, True)).armed == ""


def test_a_dead_card_says_who_ended_it(host: ScriptedHost) -> None:
    host.session("s1")
    asked = host.ask()
    host.decide("r1", "no", by="ann")
    host.now += 3_000
    made = card_of(host, asked)
    assert (made.open, made.options, made.armed, made.deadline) == (False, (), "", "")
    assert made.ending == "denied by ann 0:03 ago"


def test_doubts_stand_on_the_card(host: ScriptedHost) -> None:
    host.session("s1", traits={"approval_target": "all_pending", "requests": "lost"})
    host.ask("r2")
    asked = host.ask("r1", text="rm\u202e -rf\u200b")
    host.contact(Contact.SILENT)
    flags = [text for text, _ in card_of(host, asked).flags]
    assert flags[0].startswith("high: disguised")
    assert flags[1:] == [
        "2 invisible or control characters were made visible",
        "contact with here is silent: last known state",
        "one decision settles this and 1 more at once",
        "unconfirmed: its source does not list what is open",
        "continuity: not followed",
    ]


def test_an_undecidable_card_has_no_live_button(host: ScriptedHost) -> None:
    host.session("s1")
    host.ask()
    asked = host.open(host.asked["r1"].model_copy(update={"digest": "sha256:0"}))
    made = card_of(host, asked)
    assert made.flags[0] == ("undecidable: its digest is not that of its text", "failed")
    assert not any(option.enabled for option in made.options)


def test_a_card_of_an_observer_has_no_live_button(host: ScriptedHost) -> None:
    host.session("s1")
    made = card_of(host, host.ask(), read_only=True)
    assert {option.note for option in made.options} == {"this console only watches (--read-only)"}


def test_a_question(host: ScriptedHost) -> None:
    host.session("s1")
    fields = [
        m.FormField.model_validate(
            {
                "name": "b", "label": "Which branch?", "type": "choice", "free_text": True,
                "choices": [{"value": "m", "label": "main", "note": "stable"}],
            }
        ),
        m.FormField.model_validate({"name": "k", "type": "secret"}),
    ]  # fmt: skip
    made = card_of(host, host.question(fields=fields), entered={"b": "dev", "k": "hunter2"})
    assert made.fields[0].choices == ("main  stable", "or in your own words")
    assert [field.value for field in made.fields] == ["dev", "*******"]
    assert choices(made) == [("o", "Answer", True)]


def test_a_request_whose_text_has_not_come(host: ScriptedHost) -> None:
    host.session("s1")
    ref = {"id": "r1", "kind": "approval", "asked_at": host.now, "digest": "sha256:ab"}
    host.summary("s1", requests=[ref])
    made = card_of(host, RequestKey("here", "s1", "r1"))
    assert (made.options, made.actions) == ((), ())
    assert made.flags == (("undecidable: its text has not come yet", "attention"),)


def test_no_card_for_what_is_not_known(host: ScriptedHost) -> None:
    assert card(host.fleet, RequestKey("here", "s1", "r9"), host.now, keys=KEYS) is None


def test_who_else_is_at_it_stands_apart_from_its_risks_and_disarms_nothing(host: ScriptedHost) -> None:
    host.session("s1")
    asked = host.ask("r1")
    seen = Seen(host.asked["r1"].digest, host.now, whole=True)
    host.now += 10_000
    alone = card_of(host, asked, seen=seen)
    assert (alone.presence, alone.armed) == ("", "armed")
    host.tell(f.Presence(session="s1", request="r1", looking=("ann", "e" * 500), claimed_by="ann"))
    found = card_of(host, asked, seen=seen)
    assert found.presence == f"ann, {'e' * 39}… look at this card, ann has claimed it"
    assert found._replace(presence=alone.presence) == alone, "nothing that is decided has changed"
    host.tell(f.Presence(session="s1", request="r1", claimed_by=str(host.fleet.sources["here"].principal)))
    assert card_of(host, asked, seen=seen).presence == "you have claimed it"
    host.decide("r1")
    assert card_of(host, asked, seen=seen).presence == ""
