"""The GraphQL objects of a stand-in Dagger engine, over its agents and conversations.

Each object names its fields as the schema does; a field with arguments, or one that blocks, is a method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable
from typing import Any, ClassVar

from graphql import GraphQLResolveInfo

from tests.peers.dagger_conversation import Block, Conversation, Origin, StepFailed, Tokens, Turn, said
from tests.peers.dagger_engine import Engine
from tests.peers.dagger_runtime import Mail, Refused, Runtime

VERBS = frozenset({"send", "pause", "resume", "stop", "reseed", "notify", "wait"})


class Node:
    """One object. `fields` gives the plain ones."""

    type: ClassVar[str]

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def field(self, name: str, args: dict[str, Any]) -> Any:
        found = getattr(self, f"f_{name}")
        return found(**args)


def resolve(source: Any, info: GraphQLResolveInfo[Any], **args: Any) -> Any:
    """The field resolver of the schema."""
    if isinstance(source, dict):
        return source[info.field_name]
    return source.field(info.field_name, args)


def type_of(value: Any, *_: Any) -> str:
    return str(value.type)


class Query(Node):
    type = "Query"

    def f_version(self) -> str:
        return self.engine.version

    def f_llm(self, model: str | None = None, provider: str | None = None) -> LLM:
        return LLM(self.engine, Conversation(model or "echo", provider or "stand-in"))

    def f_node(self, id: str) -> Node | None:
        if id.startswith("llm-"):
            return LLM(self.engine, self.engine.conversations[id])
        handle, _, ref = id.removeprefix("agent-").partition("!")
        runtime = self.engine.agents.get(handle)
        if runtime is None and handle in self.engine.addressed:
            return Unborn(self.engine, self.engine.addressed[handle])
        if not id.startswith("agent-") or runtime is None:
            raise Refused(f"no object with id {id!r} in this session")
        return Message(self.engine, runtime, runtime.message(ref)) if ref else Agent(self.engine, runtime)


class Agent(Node):
    type = "Agent"

    def __init__(self, engine: Engine, runtime: Runtime) -> None:
        super().__init__(engine)
        self.runtime = runtime

    def field(self, name: str, args: dict[str, Any]) -> Any:
        if name in VERBS:
            self.engine.note(name, self.runtime.handle)
        return super().field(name, args)

    def f_id(self) -> str:
        return f"agent-{self.runtime.handle}"

    def f_name(self) -> str:
        return self.runtime.name

    def f_handle(self) -> str:
        return self.runtime.handle

    def f_state(self) -> str:
        return self.runtime.state

    def f_error(self) -> str:
        return self.runtime.error

    def f_snapshot(self) -> LLM:
        return LLM(self.engine, self.runtime.conversation, self.runtime)

    def f_seed(self) -> LLM:
        return LLM(self.engine, self.runtime.seed)

    def f_parent(self) -> Agent | None:
        return None if self.runtime.parent is None else Agent(self.engine, self.runtime.parent)

    def f_message(self, ref: str) -> Message:
        return Message(self.engine, self._known(), self.runtime.message(ref))

    def f_send(self, message: str, replyTo: str = "", content: list[Any] | None = None) -> str:
        return message_id(self.runtime, self._known().send(message, replyTo))

    def f_pause(self, interrupt: bool = False) -> str:
        self.runtime.pause(interrupt)
        return self.f_id()

    def f_resume(self) -> str:
        self.runtime.resume()
        return self.f_id()

    async def f_stop(self, kill: bool = False) -> str:
        await self.runtime.stop(kill)
        return self.f_id()

    async def f_wait(self) -> str:
        await self.runtime.wait()
        return self.f_id()

    def f_reseed(self, conversation: str) -> str:
        self._known().reseed(self.engine.conversations[conversation])
        return self.f_id()

    def f_notify(self, subscriber: str, on: list[str]) -> str:
        self.runtime.notify(self.engine.agents[subscriber.removeprefix("agent-")], on)
        return self.f_id()

    def _known(self) -> Runtime:
        if self.engine.agents.get(self.runtime.handle) is not self.runtime:
            raise Refused(f'agent "{self.runtime.name}" has no runtime in this session')
        return self.runtime


class Unborn(Agent):
    """An agent that is addressed by a handle which this session does not have."""

    def f_message(self, ref: str) -> Message:
        raise Refused(f'agent "{self.runtime.name}" has no runtime entry in this session')

    def field(self, name: str, args: dict[str, Any]) -> Any:
        # The older engine makes an entry for whatever it is asked about; the newer one wants to know it.
        if name in ("pause", "resume", "stop", "wait"):
            if self.engine.beta >= 21:
                raise Refused(f'agent "{self.runtime.name}" has no runtime in this session')
            self.engine.agents[self.runtime.handle] = self.runtime
        return super().field(name, args)


def message_id(runtime: Runtime, mail: Mail) -> str:
    return f"agent-{runtime.handle}!{mail.ref}"


class Message(Node):
    type = "AgentMessage"

    def __init__(self, engine: Engine, runtime: Runtime, mail: Mail) -> None:
        super().__init__(engine)
        self.runtime, self.mail = runtime, mail

    def f_id(self) -> str:
        return message_id(self.runtime, self.mail)

    def f_ref(self) -> str:
        return self.mail.ref

    async def f_delivery(self) -> str:
        return await asyncio.shield(self.mail.delivered)

    async def f_response(self) -> str:
        if self.runtime.state == "FAILED" and self.mail in self.runtime.mailbox:
            raise Refused(f'agent "{self.runtime.name}" failed before consuming this message')
        return await asyncio.shield(self.mail.answer)


class LLM(Node):
    type = "LLM"

    def __init__(self, engine: Engine, conversation: Conversation, runtime: Runtime | None = None) -> None:
        super().__init__(engine)
        self.value = engine.keep(conversation)
        self.runtime = runtime
        self._plain: dict[str, Callable[[Conversation], Any]] = {
            "id": lambda c: c.id,
            "portableID": lambda c: c.id,
            "model": lambda c: c.model,
            "provider": lambda c: c.provider,
            "reasoningEffort": lambda c: c.effort,
            "hasPending": lambda c: c.pending,
            "lastReply": lambda c: c.last_reply,
            "transcript": lambda c: "\n".join(turn.text for turn in c.turns),
            "contextTokens": lambda c: c.context,
            "contextWindow": lambda c: None if c.model.startswith("replay/") else 200_000,
            "messages": lambda c: [_turn(turn) for turn in c.turns],
            "tokenUsage": lambda c: _tokens(c.tokens),
            "skills": lambda c: [],
            "expertise": lambda c: [],
            "tools": lambda c: "",
            "sync": lambda c: c.id,
            "replay": lambda c: c.id,
        }

    def field(self, name: str, args: dict[str, Any]) -> Any:
        plain = self._plain.get(name)
        return plain(self.value) if plain is not None and not args else super().field(name, args)

    def _with(self, conversation: Conversation) -> LLM:
        return LLM(self.engine, conversation)

    def f_agent(self, handle: str, name: str) -> Agent:
        known = self.engine.agents.get(handle)
        if known is not None:
            return Agent(self.engine, known)
        unborn = self.engine.addressed.setdefault(handle, Runtime(self.engine, name, handle, self.value))
        return Unborn(self.engine, unborn)

    def f_spawn(
        self,
        name: str = "",
        handle: str = "",
        state: str = "IDLE",
        error: str = "",
        expertise: list[str] | None = None,
        parentHandle: str | None = None,
    ) -> str:
        runtime = self.engine.spawn(name or "", self.value, handle or "")
        self.engine.note("spawn", runtime.handle)
        if handle or state != "IDLE" or error:
            self.engine.restore(runtime, state, error)
        return f"agent-{runtime.handle}"

    def f_fork(self, label: str) -> LLM:
        return self._with(replace(self.value, label=label))

    def f_withModel(self, model: str, provider: str | None = None) -> LLM:
        return self._with(replace(self.value, model=model, provider=provider or self.value.provider))

    def f_withReasoningEffort(self, effort: str) -> LLM:
        return self._with(replace(self.value, effort=effort))

    def f_withPrompt(self, prompt: str, origin: dict[str, str] | None = None) -> LLM:
        return self._with(self.value.plus(said(prompt, _origin(origin))))

    def f_withSystemPrompt(self, prompt: str) -> LLM:
        return self._with(self.value.plus(said(prompt, role="SYSTEM")))

    def f_withResponse(
        self,
        content: list[dict[str, Any]],
        inputTokens: int = 0,
        outputTokens: int = 0,
        cachedTokenReads: int = 0,
        cachedTokenWrites: int = 0,
        totalTokens: int = 0,
    ) -> LLM:
        tokens = Tokens(inputTokens, outputTokens, cachedTokenReads, cachedTokenWrites)
        return self._with(self.value.plus(Turn("ASSISTANT", tuple(_block(one) for one in content), tokens=tokens)))

    def f_withToolResult(
        self, callId: str, content: str, errored: bool, blocks: list[dict[str, Any]] | None = None
    ) -> LLM:
        block = Block("TOOL_RESULT", content, call_id=callId, errored=errored)
        last = self.value.turns[-1] if self.value.turns else None
        if last is not None and last.role == "USER" and last.blocks and last.blocks[0].kind == "TOOL_RESULT":
            turns = (*self.value.turns[:-1], replace(last, blocks=(*last.blocks, block)))
            return self._with(replace(self.value, turns=turns))
        return self._with(self.value.plus(Turn("USER", (block,))))

    def f_withoutMessageHistory(self) -> LLM:
        return self._with(replace(self.value, turns=tuple(t for t in self.value.turns if t.role == "SYSTEM")))

    async def f_loop(self, maxSteps: int | None = None, maxTokens: int | None = None) -> LLM:
        value = self.value
        for _ in range(maxSteps or 8):
            if not value.pending:
                break
            try:
                reply = await self.engine.models.step(value)
            except StepFailed as failure:
                raise Refused(str(failure)) from None
            value = value.plus(reply)
        return self._with(value)


def _turn(turn: Turn) -> dict[str, Any]:
    origin = turn.origin
    return {
        "id": "",
        "role": turn.role,
        "content": [_shown(block) for block in turn.blocks],
        "origin": None
        if origin is None
        else {"id": "", "kind": origin.kind, "agentName": origin.agent, "ref": origin.ref, "replyTo": origin.reply_to},
        "tokenUsage": _tokens(turn.tokens),
    }


def _shown(block: Block) -> dict[str, Any]:
    return {
        "id": "",
        "kind": block.kind,
        "text": block.text,
        "callId": block.call_id,
        "toolName": block.tool,
        "arguments": block.arguments,
        "errored": block.errored,
        "signature": "",
        "content": [_shown(inner) for inner in block.inside],
        "data": "",
        "mimeType": "",
    }


def _tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "id": "",
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "cachedTokenReads": tokens.reads,
        "cachedTokenWrites": tokens.writes,
        "totalTokens": tokens.total,
    }


def _block(given: dict[str, Any]) -> Block:
    return Block(
        given["kind"],
        given.get("text", ""),
        given.get("callId", ""),
        given.get("toolName", ""),
        given.get("arguments") or "",
        given.get("errored", False),
    )


def _origin(given: dict[str, str] | None) -> Origin | None:
    if given is None:
        return None
    return Origin(given["kind"], given.get("agentName", ""), given.get("ref", ""), given.get("replyTo", ""))


async def settled(value: Awaitable[Any] | Any) -> Any:
    return await value if isawaitable(value) else value
