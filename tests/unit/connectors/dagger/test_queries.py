"""Every document that can be sent, held against the schemas of two engines, and against schemas that lack something."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import GraphQLSchema, graphql_sync, parse, validate

from console.connectors.dagger import abilities, queries, rebuild
from console.connectors.dagger.abilities import Abilities
from console.connectors.dagger.transcript import turns
from tests.peers.dagger_server import schema_of
from watchfloor.words import Primitive, ReseedMode

BETAS = [14, 21]


def read(schema: GraphQLSchema) -> Abilities:
    answer = graphql_sync(schema, abilities.ASK)
    assert answer.errors is None
    return Abilities.read(answer.data or {})


def documents(can: Abilities) -> dict[str, str]:
    """Every document that a connection with these abilities may send, by name."""
    found = {"ask": abilities.ASK, "alive": queries.ALIVE, "identity": queries.identity(can)}
    offered, modes = can.of_agent(), can.modes()
    possible: list[tuple[object, str, str]] = [
        (can.has("Query.version"), "version", queries.VERSION),
        (can.by_handle, "by_handle", queries.by_handle(can, 3)),
        (can.knows_agents, "poll", queries.poll(can, 3)),
        (can.reads_messages, "transcript", queries.transcript(can)),
        (can.reads_messages, "messages", queries.conversation(queries.messages(can))),
        (can.looks_up, "look_up", queries.LOOK_UP),
        (offered.send, "send", queries.send(replies=False)),
        (offered.send and can.has("Agent.send", "replyTo"), "reply", queries.send(replies=True)),
        (offered.send, "ref", queries.REF),
        (offered.send, "delivery", queries.DELIVERY),
        (offered.send, "response", queries.RESPONSE),
        (offered.pause, "pause", queries.pause(interrupt=False)),
        (offered.pause and offered.pause.interrupt, "pause_now", queries.pause(interrupt=True)),
        (offered.resume, "resume", queries.RESUME),
        (offered.stop, "stop", queries.stop(kill=False)),
        (offered.stop and offered.stop.kill, "kill", queries.stop(kill=True)),
        (can.has("Agent.wait"), "wait", queries.WAIT),
        (offered.notify, "notify", queries.NOTIFY),
        (offered.reseed, "reseed", queries.RESEED),
        (offered.fork and can.has("LLM.fork", "label"), "fork", queries.fork(labels=True)),
        (offered.fork, "plain_fork", queries.fork(labels=False)),
    ]
    for model in (True, False):
        for system in (True, False):
            fits = can.spawns and can.has("Query.llm") and (can.has("LLM.withSystemPrompt") or not system)
            possible.append((fits, f"spawn_{model}_{system}", queries.spawn(model=model, system=system)))
    chains: dict[ReseedMode, list[list[rebuild.Step]]] = {
        ReseedMode.CLEAR: [[]],
        ReseedMode.REPLACE: [[rebuild.prompt("x")]],
        ReseedMode.COMPACT: [[rebuild.prompt("x"), rebuild.answer("y")]],
    }
    if ReseedMode.REWIND in modes:
        chains[ReseedMode.REWIND] = rebuild.steps(rebuild.spoken(turns(TALK)), can)
    for mode, groups in chains.items():
        if mode in modes:
            for number, group in enumerate(groups):
                fields, types, _ = rebuild.chain(group, empty=number == 0)
                document = queries.snapshot(fields, types) if number == 0 else queries.conversation(fields, types)
                found[f"{mode.value}_{number}"] = document
    if ReseedMode.MODEL in modes:
        found["model"] = queries.snapshot("withModel(model: $model) { id model }", "$model: String!")
    if ReseedMode.COMPACT in modes:
        summary = "withPrompt(prompt: $prompt) { loop(maxSteps: 1) { hasPending lastReply } }"
        found["summary"] = queries.snapshot(summary, "$prompt: String!")
    return {**found, **{name: document for fits, name, document in possible if fits}}


def block(kind: str, **fields: object) -> dict[str, object]:
    return {"kind": kind, "text": "", "callId": "", "toolName": "", "arguments": "", "errored": False, **fields}


USAGE = {"inputTokens": 1, "outputTokens": 2, "cachedTokenReads": 3, "cachedTokenWrites": 4, "totalTokens": 10}
ORIGIN = {"kind": "USER", "agentName": "", "ref": "#1", "replyTo": ""}
TALK: Any = [
    {"role": "SYSTEM", "content": [block("TEXT", text="help")], "origin": None, "tokenUsage": USAGE},
    *[
        {"role": role, "content": [content], "origin": origin, "tokenUsage": USAGE}
        for _ in range(10)
        for role, content, origin in (
            ("USER", block("TEXT", text="go"), ORIGIN),
            ("ASSISTANT", block("TOOL_CALL", callId="c", toolName="ci", arguments="{}"), None),
            ("USER", block("TOOL_RESULT", text="ok", callId="c"), None),
            ("ASSISTANT", block("TEXT", text="done"), None),
        )
    ],
]
"""A conversation of 40 messages besides its system prompt."""


def faults(schema: GraphQLSchema, can: Abilities) -> dict[str, list[str]]:
    found = {name: [str(e) for e in validate(schema, parse(document))] for name, document in documents(can).items()}
    return {name: errors for name, errors in found.items() if errors}


@pytest.mark.parametrize("beta", BETAS)
def test_every_document_is_valid(beta: int) -> None:
    schema = schema_of(beta)
    can = read(schema)
    assert len(documents(can)) == 35
    assert faults(schema, can) == {}


@pytest.mark.parametrize("beta", BETAS)
def test_everything_that_the_schema_has_is_offered(beta: int) -> None:
    can = read(schema_of(beta))
    offered = can.of_agent()
    assert set(can.of_agent(waits=True).advertised()) - set(offered.advertised()) == {Primitive.ANSWER}
    assert offered.reseed is not None
    assert set(offered.reseed.modes) == set(ReseedMode)
    assert offered.pause is not None
    assert offered.stop is not None
    assert (offered.pause.interrupt, offered.stop.kill) == (True, True)
    named = {p.value for p in offered.advertised()}
    assert named == {"send", "pause", "resume", "stop", "reseed", "fork", "notify"}


LACKING = {
    "Agent": "send pause resume stop reseed notify wait message snapshot error name",
    "LLM": "agent spawn fork withModel withPrompt withResponse withToolResult withoutMessageHistory loop lastReply "
    "messages tokenUsage contextTokens contextWindow withSystemPrompt model provider reasoningEffort hasPending",
    "LLMMessage": "origin tokenUsage",
    "LLMContentBlock": "signature content mimeType",
    "Query": "version llm",
}
REMOVABLE = [f"{type_name}.{name}" for type_name, names in LACKING.items() for name in names.split()]


@pytest.mark.parametrize("lacks", REMOVABLE)
def test_what_a_schema_lacks_is_not_asked_for(lacks: str) -> None:
    schema = schema_of(21, without=(lacks,))
    can = read(schema)
    assert not can.has(lacks)
    assert faults(schema, can) == {}


@pytest.mark.parametrize(
    ("lacks", "gone"),
    [
        ("Agent.send", {"send"}),
        ("Agent.pause", {"pause"}),
        ("Agent.resume", {"resume"}),
        ("Agent.stop", {"stop"}),
        ("Agent.reseed", {"reseed"}),
        ("Agent.notify", {"notify"}),
        ("LLM.spawn", {"fork"}),
        ("Agent.snapshot", {"reseed", "fork"}),
    ],
)
def test_what_a_schema_lacks_is_not_offered(lacks: str, gone: set[str]) -> None:
    whole, less = (read(schema_of(21, without=w)).of_agent().advertised() for w in ((), (lacks,)))
    assert {p.value for p in whole} - {p.value for p in less} == gone


@pytest.mark.parametrize(
    ("lacks", "gone"),
    [
        ("LLM.withModel", {"model"}),
        ("LLM.loop", {"compact"}),
        ("LLM.withToolResult", {"rewind"}),
        ("LLM.messages", {"rewind"}),
        ("LLM.withPrompt", {"replace", "rewind", "compact"}),
        ("LLM.withoutMessageHistory", {"clear", "replace", "rewind", "compact"}),
    ],
)
def test_which_ways_of_reseeding_there_are(lacks: str, gone: set[str]) -> None:
    assert {mode.value for mode in ReseedMode} - {
        mode.value for mode in read(schema_of(21, without=(lacks,))).modes()
    } == gone


def test_options_follow_the_arguments_of_the_verbs() -> None:
    schema = schema_of(21, without=("Agent.pause.interrupt", "Agent.stop.kill"))
    can = read(schema)
    offered = can.of_agent()
    assert offered.pause is not None
    assert offered.stop is not None
    assert (offered.pause.interrupt, offered.stop.kill) == (False, False)
    assert faults(schema, can) == {}


def test_a_document_holds_one_verb_and_reads_nothing_beside_it() -> None:
    verbs = {"send", "pause", "resume", "stop", "reseed", "notify"}
    for name, document in documents(read(schema_of(21))).items():
        words = document.replace("(", " ").split()
        assert sum(words.count(verb) for verb in verbs) <= 1, name
        if any(verb in words for verb in verbs):
            assert "state" not in words, name


def test_an_engine_without_agents_is_known_as_such() -> None:
    assert not Abilities.read({}).knows_agents
    assert Abilities.read({"Agent": None, "LLM": "x", "states": []}).modes() == ()
