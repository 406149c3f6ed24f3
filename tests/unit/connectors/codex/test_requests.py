"""Requests of every kind with the decisions that the server offers, and what is sent for each."""

from __future__ import annotations

from typing import Any

import pytest

from console.connectors.codex.decisions import result_of, stood
from console.connectors.codex.requests import COMMAND, ELICITATION, FILES, PERMISSIONS, QUESTIONS, Asked, request_of
from console.connectors.codex.state import Fate
from watchfloor.protocol.frames import DoAnswer, DoApprove
from watchfloor.protocol.model import RequestModel, Subject
from watchfloor.words import OptionKind, RequestKind, Scope, Then

THREAD = {"threadId": "t1", "turnId": "u1", "itemId": "i1", "startedAtMs": 5}
RULE = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "push"]}}
ALLOW_HOST = {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "h.example", "action": "allow"}}}
DENY_HOST = {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "h.example", "action": "deny"}}}


def asked(method: str, changes: list[Any] | None = None, **params: Any) -> Asked:
    whole = {**THREAD, **params}
    request = request_of("r1", method, whole, changes=changes, call="i1", now=9)
    return Asked(0, method, whole, "r1", request, "i1")


def subject(of: Asked) -> Subject:
    return of.request.read()


def take(of: Asked, option: str) -> Any:
    return result_of(of, DoApprove(request="r1", option=option, digest=of.request.digest))


def test_every_decision_that_is_listed_is_an_option_and_is_sent_as_it_was_listed() -> None:
    listed = ["accept", "acceptForSession", RULE, ALLOW_HOST, DENY_HOST, "decline", "cancel", "later", {"new": {}}]
    of = asked(COMMAND, command="git push", cwd="/srv", availableDecisions=listed)
    options = {option.id: option for option in subject(of).options}
    assert list(options) == [
        "accept",
        "acceptForSession",
        "acceptWithExecpolicyAmendment",
        "applyNetworkPolicyAmendment:allow:h.example",
        "applyNetworkPolicyAmendment:deny:h.example",
        "decline",
        "cancel",
    ]
    assert [take(of, id)["decision"] for id in options] == [*listed[:-2]]
    rule = options["acceptWithExecpolicyAmendment"]
    assert (rule.scope, rule.persists, rule.confirm) == (Scope.GLOBAL, True, True)
    assert rule.grants == ('every command that begins with: ["git", "push"]',)
    denied = options["applyNetworkPolicyAmendment:deny:h.example"]
    assert (denied.kind, denied.grants, denied.persists) == (OptionKind.DENY, (), True)
    assert options["applyNetworkPolicyAmendment:allow:h.example"].grants == ("network access to h.example",)
    assert (options["acceptForSession"].scope, options["cancel"].then) == (Scope.SESSION, Then.ENDS_TURN)


def test_declining_is_always_there_and_nothing_else_is_added() -> None:
    of = asked(COMMAND, command="ls", availableDecisions=["accept", "cancel"])
    assert [option.id for option in subject(of).options] == ["accept", "decline", "cancel"]
    assert take(of, "decline") == {"decision": "decline"}
    with pytest.raises(ValueError, match="not offered"):
        take(of, "acceptWithExecpolicyAmendment")


def test_an_older_server_that_lists_no_decisions() -> None:
    of = asked(COMMAND, command="ls")
    assert [option.id for option in subject(of).options] == ["accept", "decline", "cancel"]


def test_everything_that_is_asked_for_is_an_action() -> None:
    network = asked(COMMAND, networkApprovalContext={"host": "h.example", "protocol": "https"})
    assert [(a.tool, a.text, a.complete) for a in subject(network).actions] == [
        ("network access", "https://h.example", True)
    ]
    more = asked(COMMAND, command="make", additionalPermissions={"network": {"enabled": True}, "fileSystem": None})
    assert [(a.tool, a.text, a.arguments) for a in subject(more).actions] == [
        ("command", "make", None),
        ("more permissions", None, {"network": {"enabled": True}}),
    ]
    typed = asked(COMMAND, kind="writeStdin", command="yes\n")
    assert subject(typed).actions[0].tool == "input to a running command"
    assert not subject(asked(COMMAND)).actions[0].complete


def test_changes_of_files() -> None:
    changes = [
        {"path": "/a", "kind": {"type": "update", "move_path": "/b"}, "diff": "@@ -1 +1 @@\n-x\n+y\n"},
        {"path": "/c", "kind": {"type": "delete"}, "diff": "gone\n"},
        {"path": "/d"},
    ]
    of = asked(FILES, changes, grantRoot="/srv")
    assert [(a.text, a.diff, a.complete) for a in subject(of).actions] == [
        ("update /a -> /b", "@@ -1 +1 @@\n-x\n+y\n", True),
        ("delete /c", "-gone\n", True),
        ("change /d", "", False),
        ("/srv", None, True),
    ]
    assert subject(of).options[0].grants == ("writing below /srv",)
    unknown = asked(FILES, None)
    assert [a.complete for a in subject(unknown).actions] == [False]
    assert take(unknown, "cancel") == {"decision": "cancel"}


def test_permissions_are_granted_as_they_were_asked_for_or_not_at_all() -> None:
    wanted = {"network": {"enabled": True}, "fileSystem": {"read": ["/r"], "write": ["/w"], "entries": []}}
    of = asked(PERMISSIONS, permissions=wanted, cwd="/srv", reason="to build")
    options = {option.id: option for option in subject(of).options}
    assert options["turn"].grants == ("network access", "read /r", "write /w")
    assert [option.scope for option in options.values()] == [Scope.TURN, Scope.SESSION, Scope.ONCE]
    assert take(of, "session") == {"permissions": wanted, "scope": "session"}
    assert take(of, "nothing") == {"permissions": {}, "scope": "turn"}
    assert of.request.about == "to build"


def question(**more: Any) -> dict[str, Any]:
    return {"id": "q1", "header": "", "question": "Which?", "isOther": False, "isSecret": False, **more}


def test_questions_are_fields_and_their_answers_are_lists() -> None:
    options = [{"label": "a", "description": ""}, {"label": "b", "description": "second"}]
    of = asked(
        QUESTIONS,
        questions=[question(options=options), question(id="q2", options=None), question(id="q3", isSecret=True)],
        isBlocking=True,
        autoResolutionMs=1000,
    )
    assert subject(of).kind is RequestKind.QUESTION
    assert [(f.name, f.type.value, f.free_text) for f in subject(of).fields] == [
        ("q1", "choice", False),
        ("q2", "text", False),
        ("q3", "secret", False),
    ]
    assert (of.request.deadline, of.request.blocks) == (1009, True)
    do = DoAnswer(request="r1", digest="", fields={"q1": "a", "q2": "free", "q3": "hidden"})
    assert result_of(of, do) == {
        "answers": {"q1": {"answers": ["a"]}, "q2": {"answers": ["free"]}, "q3": {"answers": ["hidden"]}}
    }


def elicitation(**params: Any) -> Asked:
    return asked(ELICITATION, serverName="srv", mode="form", message="Please", **params)


SCHEMA = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "many": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]}},
        "one": {"type": "string", "enum": ["p", "q"], "enumNames": ["P", "Q"]},
        "ok": {"type": "boolean"},
    },
    "required": ["one"],
}


def test_a_form_is_answered_with_its_defaults_and_can_be_declined() -> None:
    of = elicitation(requestedSchema=SCHEMA)
    assert [(f.name, f.type.value, f.required, f.default) for f in subject(of).fields] == [
        ("one", "choice", True, None),
        ("size", "number", False, 3),
        ("many", "many", False, None),
        ("ok", "bool", False, None),
    ]
    assert [(c.value, c.label) for c in subject(of).fields[0].choices] == [("p", "P"), ("q", "Q")]
    assert subject(of).fields[1].label == "size (a whole number, at least 1, at most 9)"
    do = DoAnswer(request="r1", digest="", fields={"one": "p", "many": ["x"]})
    assert result_of(of, do) == {
        "action": "accept",
        "content": {"size": 3, "one": "p", "many": ["x"]},
        "_meta": None,
    }
    assert {option.kind for option in subject(of).options} == {OptionKind.DENY}
    declined = result_of(of, DoAnswer(request="r1", digest="", option="decline"))
    assert declined == {"action": "decline", "content": None, "_meta": None}


@pytest.mark.parametrize(
    "params",
    [
        {"requestedSchema": {"type": "object", "properties": {"deep": {"type": "object"}}}},
        {"mode": "openai/form", "requestedSchema": {}},
        {"mode": "openai/userVerification", "title": "t", "description": "d", "challenge": "c"},
    ],
)
def test_a_form_that_cannot_be_shown_whole_can_only_be_refused(params: dict[str, Any]) -> None:
    of = asked(ELICITATION, **{"serverName": "srv", "mode": "form", "message": "m", **params})
    assert {option.kind for option in subject(of).options} == {OptionKind.DENY}


def test_a_page_to_open_and_a_plain_yes() -> None:
    page = asked(ELICITATION, serverName="srv", mode="url", message="m", url="https://h.example/x", elicitationId="e")
    assert subject(page).actions[0].text == "https://h.example/x"
    assert take(page, "accept") == {"action": "accept", "content": {}, "_meta": None}
    plain = elicitation(requestedSchema={"type": "object", "properties": {}})
    assert [option.id for option in subject(plain).options] == ["accept", "decline", "cancel"]


def test_a_tool_of_an_mcp_server_is_kept_only_as_long_as_the_server_offers() -> None:
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_name": "order", "tool_params": {"n": 1}}
    once = elicitation(_meta=meta, requestedSchema={})
    assert [option.id for option in subject(once).options] == ["accept", "decline", "cancel"]
    kept = elicitation(_meta={**meta, "persist": ["session", "always"]}, requestedSchema={})
    assert [option.id for option in subject(kept).options][1:3] == ["accept:session", "accept:always"]
    assert take(kept, "accept:always") == {"action": "accept", "content": {}, "_meta": {"persist": "always"}}
    assert subject(kept).options[2].persists


ALLOW, DENY, CANCEL = "accept", "decline", "cancel"


@pytest.mark.parametrize(
    ("option", "fate", "expected"),
    [
        (ALLOW, Fate(), None),
        (ALLOW, Fate(ran=True), None),
        (ALLOW, Fate(resolved=True), None),
        (ALLOW, Fate(resolved=True, ran=True), True),
        (ALLOW, Fate(resolved=True, declined=True), False),
        (ALLOW, Fate(resolved=True, turn_ended="interrupted"), None),
        (ALLOW, Fate(resolved=True, turn_ended="interrupted", looked=True), False),
        (ALLOW, Fate(turn_ended="interrupted", looked=True), False),
        (ALLOW, Fate(resolved=True, went_on=True, looked=True), None),
        (DENY, Fate(resolved=True), None),
        (DENY, Fate(resolved=True, declined=True), True),
        (DENY, Fate(resolved=True, ran=True), False),
        (DENY, Fate(resolved=True, turn_ended="completed"), None),
        (DENY, Fate(resolved=True, turn_ended="completed", looked=True), True),
        (DENY, Fate(resolved=True, went_on=True), None),
        (DENY, Fate(resolved=True, went_on=True, looked=True), True),
        (DENY, Fate(resolved=True, went_on=True, looked=True, ran=True), False),
        (CANCEL, Fate(resolved=True, declined=True), None),
        (CANCEL, Fate(resolved=True, declined=True, turn_ended="completed"), False),
        (CANCEL, Fate(resolved=True, declined=True, turn_ended="interrupted"), True),
        (CANCEL, Fate(resolved=True, turn_ended="interrupted", looked=True), True),
        (CANCEL, Fate(resolved=True, declined=True, turn_ended="transcended"), None),
    ],
)
def test_only_the_thread_proves_whose_answer_counted(option: str, fate: Fate, expected: bool | None) -> None:
    of = asked(COMMAND, command="ls")
    assert stood(of, DoApprove(request="r1", option=option, digest=of.request.digest), fate) is expected


def test_whose_answer_to_a_question_counted_is_shown_by_nothing() -> None:
    of = asked(QUESTIONS, questions=[question()])
    do = DoAnswer(request="r1", digest="", text="x")
    assert stood(of, do, Fate()) is None
    assert stood(of, do, Fate(resolved=True)) is True


def test_what_has_another_shape_than_expected_breaks_nothing() -> None:
    for method in (COMMAND, FILES, PERMISSIONS, QUESTIONS, ELICITATION):
        for broken in ({}, {"threadId": 3}, {"questions": "no"}, {"availableDecisions": [None, 3, {"accept": 1}]}):
            made = request_of("r1", method, broken, changes=None, call=None, now=9)
            assert isinstance(made, RequestModel)
            assert made.read().id == "r1"
