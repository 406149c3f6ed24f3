"""The documents that are sent, made from what the engine's schema has.

An engine carries verbs out as fields of queries, and resolves the fields of one selection at the same time: a document
holds one verb, and never reads beside it.
"""

from __future__ import annotations

from typing import Final

from console.connectors.dagger.abilities import Abilities

ANY_MODEL: Final = "replay/W10="
"""The recording of no message: the receiver of a look-up by handle, for which no provider is asked about anything."""
USAGE: Final = "tokenUsage { inputTokens outputTokens cachedTokenReads cachedTokenWrites totalTokens }"
ALIVE: Final = "query Alive { __typename }"
VERSION: Final = "query Version { version }"
RESUME: Final = "query Resume($id: ID!) { node(id: $id) { ... on Agent { resume } } }"
WAIT: Final = "query Wait($id: ID!) { node(id: $id) { ... on Agent { wait } } }"
REF: Final = "query Ref($id: ID!) { node(id: $id) { ... on AgentMessage { ref } } }"
LOOK_UP: Final = (
    "query LookUp($id: ID!, $ref: String!) { node(id: $id) { ... on Agent { message(ref: $ref) { id ref } } } }"
)
"""One message by its number: where several are asked for, one that is missing takes the others along."""
DELIVERY: Final = "query Delivery($id: ID!) { node(id: $id) { ... on AgentMessage { delivery } } }"
RESPONSE: Final = "query Response($id: ID!) { node(id: $id) { ... on AgentMessage { response } } }"
RESEED: Final = "query Reseed($id: ID!, $llm: ID!) { node(id: $id) { ... on Agent { reseed(conversation: $llm) } } }"
NOTIFY: Final = (
    "query Notify($id: ID!, $subscriber: ID!, $on: [AgentState!]) "
    "{ node(id: $id) { ... on Agent { notify(subscriber: $subscriber, on: $on) } } }"
)


def by_handle(abilities: Abilities, agents: int) -> str:
    """Who has these handles, aliased a0, a1, …; variables h0, h1, … hold them, and n0, n1, … their names."""
    wanted = " ".join(abilities.of("Agent", "id", "name", "handle", "state"))
    variables = ", ".join(f"$h{n}: String!, $n{n}: String!" for n in range(agents))
    aliased = " ".join(
        f'a{n}: llm(model: "{ANY_MODEL}") {{ agent(handle: $h{n}, name: $n{n}) {{ {wanted} }} }}' for n in range(agents)
    )
    return f"query ByHandle({variables}) {{ {aliased} }}"


def identity(abilities: Abilities) -> str:
    """Who has this id?"""
    wanted = " ".join(abilities.of("Agent", "id", "name", "handle"))
    return f"query Identity($id: ID!) {{ node(id: $id) {{ ... on Agent {{ {wanted} }} }} }}"


def poll(abilities: Abilities, ids: int) -> str:
    """The state of several agents, aliased a0, a1, …; variables of the same names hold their ids."""
    plain = abilities.of("Agent", "id", "name", "handle", "state", "error")
    if abilities.has("Agent.parent"):
        plain.append("parent { handle }")
    if abilities.has("Agent.snapshot"):
        wanted = abilities.of(
            "LLM", "model", "provider", "reasoningEffort", "contextTokens", "contextWindow", "hasPending", "lastReply"
        )
        if abilities.has("LLM.tokenUsage"):
            wanted.append(USAGE)
        if wanted:
            plain.append(f"snapshot {{ {' '.join(wanted)} }}")
    variables = ", ".join(f"$a{n}: ID!" for n in range(ids))
    aliased = " ".join(f"a{n}: node(id: $a{n}) {{ ...A }}" for n in range(ids))
    return f"query Poll({variables}) {{ {aliased} }} fragment A on Agent {{ {' '.join(plain)} }}"


def messages(abilities: Abilities) -> str:
    """What is said in a message: for a conversation that is read."""
    plain = ("kind", "text", "callId", "toolName", "arguments", "errored", "signature", "mimeType")
    content = " ".join(abilities.of("LLMContentBlock", *plain))
    if abilities.has("LLMContentBlock.content"):
        content += " content { kind text }"
    origin = " ".join(abilities.of("LLMMessageOrigin", "kind", "agentName", "ref", "replyTo"))
    told = f" origin {{ {origin} }}" if origin and abilities.has("LLMMessage.origin") else ""
    usage = f" {USAGE}" if abilities.has("LLMMessage.tokenUsage") else ""
    return f"messages {{ role content {{ {content} }}{told}{usage} }}"


def transcript(abilities: Abilities) -> str:
    return (
        f"query Transcript($id: ID!) {{ node(id: $id) {{ ... on Agent {{ snapshot {{ {messages(abilities)} }} }} }} }}"
    )


def snapshot(what: str, variables: str = "") -> str:
    """Something of an agent's conversation, such as a value that is built on it."""
    more = f", {variables}" if variables else ""
    return f"query Snapshot($id: ID!{more}) {{ node(id: $id) {{ ... on Agent {{ snapshot {{ {what} }} }} }} }}"


def conversation(what: str, variables: str = "") -> str:
    """Something of a conversation that is known by its id."""
    more = f", {variables}" if variables else ""
    return f"query Conversation($llm: ID!{more}) {{ node(id: $llm) {{ ... on LLM {{ {what} }} }} }}"


def send(*, replies: bool) -> str:
    variables, arguments = ("$id: ID!, $message: String!", "message: $message")
    if replies:
        variables, arguments = f"{variables}, $replyTo: String", f"{arguments}, replyTo: $replyTo"
    return f"query Send({variables}) {{ node(id: $id) {{ ... on Agent {{ send({arguments}) }} }} }}"


def pause(*, interrupt: bool) -> str:
    how = "(interrupt: true)" if interrupt else ""
    return f"query Pause($id: ID!) {{ node(id: $id) {{ ... on Agent {{ pause{how} }} }} }}"


def stop(*, kill: bool) -> str:
    how = "(kill: true)" if kill else ""
    return f"query Stop($id: ID!) {{ node(id: $id) {{ ... on Agent {{ stop{how} }} }} }}"


def spawn(*, model: bool, system: bool) -> str:
    variables, llm = ["$name: String"], "llm"
    if model:
        variables.append("$model: String")
        llm = "llm(model: $model)"
    what = "spawn(name: $name)"
    if system:
        variables.append("$system: String!")
        what = f"withSystemPrompt(prompt: $system) {{ {what} }}"
    return f"query Spawn({', '.join(variables)}) {{ {llm} {{ {what} }} }}"


def fork(*, labels: bool) -> str:
    """A new agent that goes on from another one's conversation."""
    if labels:
        return snapshot("fork(label: $label) { spawn(name: $name) }", "$label: String!, $name: String")
    return snapshot("spawn(name: $name)", "$name: String")
