"""An agent of Pydantic AI as a session: its deferred tool calls are requests, its text and its calls are events.

Needs the package `pydantic-ai-slim` (`pip install 'watchfloor[pydantic-ai]'`), and whatever the agent's model needs.

What the agent said and called is kept in the conversation, as messages of the role "model", so that the session
remembers it over turns, retries and restarts of its host. A tool that requires approval is not run before an operator
allows it; a call that is answered outside of the agent is a question, whose answer is its result.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)

from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.harness.calls import new_id, plain, result_text, sound
from watchfloor.harness.function import FULL_CONTROL, FunctionHarness
from watchfloor.harness.run import DENY, Approval, Run
from watchfloor.protocol.events import Message, Reasoning, ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.model import Action, Capabilities, Option
from watchfloor.words import OptionKind

ROLE: Final = "model"
AGAIN: Final = "It was being carried out when its host ended: whether it ran, and how far, is not known."
RUN_AGAIN: Final = Option(id="allow", label="Run it again", kind=OptionKind.ALLOW)
_ENDED: Final = "The turn was ended before anybody decided."


class PydanticAiHarness(FunctionHarness):
    """Runs an agent of Pydantic AI.

    `deps` is handed to each of its runs. `grace_s`: seconds that it has to end once it was told to. `model`: the label
    of its model; with it operators may choose another one, which is then the model of its next run, by its name.
    """

    def __init__(
        self,
        agent: Agent[Any, Any],
        *,
        deps: Any = None,
        capabilities: Capabilities = FULL_CONTROL,
        grace_s: float = 5.0,
        model: str | None = None,
    ) -> None:
        if isinstance(agent, type) or not callable(getattr(agent, "run", None)):
            name = getattr(agent, "__name__", type(agent).__name__)
            raise TypeError(f"an agent of Pydantic AI is wanted, not {name}")

        async def turn(run: Run, mail: tuple[MailItem, ...]) -> str:
            return await _Turn(agent, deps, run, mail).answer()

        super().__init__(turn, capabilities=capabilities, grace_s=grace_s, model=model)


@dataclass(slots=True)
class _Entry:
    """What one run added to the conversation. `asks`: the calls that wait for somebody, in their order; those in
    `begun` were allowed and may have run. `turn`: ref of the message that it answers."""

    messages: list[ModelMessage]
    turn: str | None = None
    approvals: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)

    def dump(self) -> ConversationMessage:
        data = {
            "messages": json.loads(ModelMessagesTypeAdapter.dump_json(self.messages)),
            "turn": self.turn,
            "approvals": self.approvals,
            "calls": self.calls,
            "begun": self.begun,
        }
        return ConversationMessage(ROLE, json.dumps(data))

    @classmethod
    def load(cls, message: ConversationMessage) -> _Entry:
        data = json.loads(message.text)
        messages = ModelMessagesTypeAdapter.validate_python(data["messages"])
        return cls(messages, data["turn"], data["approvals"], data["calls"], data["begun"])

    @property
    def waits(self) -> bool:
        return bool(self.approvals or self.calls)

    def part(self, call: str) -> ToolCallPart:
        return next(
            part
            for message in reversed(self.messages)
            for part in message.parts
            if isinstance(part, ToolCallPart) and part.tool_call_id == call
        )


class _Turn:
    """One turn: runs of the agent, until one ends without asking anything."""

    def __init__(self, agent: Agent[Any, Any], deps: Any, run: Run, mail: tuple[MailItem, ...]) -> None:
        self._agent = agent
        self._deps = deps
        self._run = run
        self._mail = mail
        self._ref = mail[0].ref if mail else None
        self._announced: set[str] = set()
        self._declined: set[str] = set()
        self._texts: dict[int, tuple[str, str, list[str]]] = {}

    async def answer(self) -> str:
        entries = [_Entry.load(message) for message in self._run.messages if message.role == ROLE]
        history = [message for entry in entries for message in entry.messages]
        prompt: str | None = "\n\n".join(item.text for item in self._mail) or None
        results: DeferredToolResults | None = None
        last = entries[-1] if entries else None
        if last is not None and last.waits:
            if last.turn is not None and last.turn in {item.ref for item in self._mail}:
                # The turn was suspended or cut while it asked: it goes on there, and the model is not asked again.
                prompt, results = None, await self._decide(last)
            else:
                results = DeferredToolResults(approvals=dict.fromkeys(last.approvals, ToolDenied(_ENDED)))
                results.calls = dict.fromkeys(last.calls, _ENDED)
        while True:
            result: AgentRunResult[Any] = await self._agent.run(
                prompt,
                output_type=[self._agent.output_type, DeferredToolRequests],
                message_history=history,
                deferred_tool_results=results,
                deps=self._deps,
                model=self._run._port.conversation.model,
                event_stream_handler=self._told,
            )
            self._end_texts()
            usage = result.usage
            self._run.usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
            entry = _Entry(list(result.new_messages()), self._ref)
            history = list(result.all_messages())
            if not isinstance(result.output, DeferredToolRequests):
                self._run.messages.append(entry.dump())
                return _text(result.output)
            entry.approvals = [part.tool_call_id for part in result.output.approvals]
            entry.calls = [part.tool_call_id for part in result.output.calls]
            self._run.messages.append(entry.dump())
            prompt, results = None, await self._decide(entry)

    # --- asking

    async def _decide(self, entry: _Entry) -> DeferredToolResults:
        """Ask for all that the entry waits for, each on a card of its own."""
        again = set(entry.begun)
        answers = await asyncio.gather(
            *(self._approved(entry.part(call), again=call in again) for call in entry.approvals),
            *(self._answered(entry.part(call)) for call in entry.calls),
        )
        approvals = dict(zip(entry.approvals, answers, strict=False))
        results = DeferredToolResults()
        for call, approval in approvals.items():
            allowed = isinstance(approval, Approval) and approval.allowed
            note = approval.note if isinstance(approval, Approval) else None
            results.approvals[call] = True if allowed else ToolDenied(note or "The operator denied it.")
            if allowed:
                entry.begun.append(call)
            else:
                self._declined.add(call)
                self._emit(ToolResult(at=0, call=call, status=ToolStatus.DECLINED, text=sound(note or "")))
        results.calls = dict(zip(entry.calls, answers[len(entry.approvals) :], strict=True))
        # What is allowed may begin from now on: noted before it does.
        self._run.messages[-1 - self._since(entry)] = entry.dump()
        for call in entry.begun:
            self._run._port.begin(call, entry.part(call).tool_name)
        return results

    def _since(self, entry: _Entry) -> int:
        """How many messages came after the entry."""
        messages = self._run.messages
        return next(n for n in range(len(messages)) if messages[-1 - n].role == ROLE)

    async def _approved(self, part: ToolCallPart, *, again: bool) -> Approval:
        self._announce(part, gated=True)
        action = Action(tool=part.tool_name, arguments=_arguments(part), call=part.tool_call_id)
        if again:
            # An answer that was given before this was known is none to it.
            return await self._run.approve(action, options=(RUN_AGAIN, DENY), about=AGAIN)
        return await self._run.approve(action)

    async def _answered(self, part: ToolCallPart) -> str:
        self._announce(part, gated=False)
        shown = json.dumps(_arguments(part), ensure_ascii=False)
        answer = await self._run.ask(f"{part.tool_name} {shown}: what is its result?")
        text = answer.text or answer.note or ""
        self._emit(ToolResult(at=0, call=part.tool_call_id, status=ToolStatus.OK, text=sound(text)))
        self._declined.add(part.tool_call_id)
        return text

    # --- telling

    async def _told(self, _: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart() | ThinkingPart() as part):
                    of = "message" if isinstance(part, TextPart) else "reasoning"
                    self._texts[event.index] = (new_id("item"), of, [])
                    self._more(event.index, part.content)
                case PartDeltaEvent(delta=TextPartDelta() | ThinkingPartDelta() as delta):
                    self._more(event.index, delta.content_delta or "")
                case FunctionToolCallEvent(part=part) if event.args_valid is not None:
                    self._end_texts()
                    self._announce(part, gated=False)
                    self._run._port.begin(part.tool_call_id, part.tool_name)
                case FunctionToolResultEvent():
                    self._result(event)
                case _:
                    pass
        self._end_texts()

    def _more(self, index: int, text: str) -> None:
        if index in self._texts and text:
            item, of, parts = self._texts[index]
            parts.append(sound(text))
            self._run._port.stream(item, of, sound(text))

    def _end_texts(self) -> None:
        texts, self._texts = self._texts, {}
        for item, of, parts in texts.values():
            if text := "".join(parts):
                kind = Message if of == "message" else Reasoning
                self._emit(kind(at=0, item=item, text=text))

    def _announce(self, part: ToolCallPart, *, gated: bool) -> None:
        if part.tool_call_id not in self._announced:
            self._announced.add(part.tool_call_id)
            arguments = _arguments(part)
            self._emit(ToolCall(at=0, call=part.tool_call_id, name=part.tool_name, arguments=arguments, gated=gated))

    def _result(self, event: FunctionToolResultEvent) -> None:
        call = event.tool_call_id
        if call in self._declined:
            return
        part = event.part
        failed = isinstance(part, RetryPromptPart)
        text, cut = result_text(part.content if isinstance(part.content, str) else plain_or_text(part.content))
        status = ToolStatus.ERROR if failed else ToolStatus.OK
        self._run._port.end(call)
        self._emit(ToolResult(at=0, call=call, status=status, text=text, cut=cut))

    def _emit(self, event: Any) -> None:
        self._run._desk.emit(event)


def plain_or_text(value: object) -> object:
    """The value where it is JSON, else in words."""
    try:
        return plain(value)
    except Exception:
        return str(value)


def _arguments(part: ToolCallPart) -> Any:
    try:
        return plain(part.args_as_dict())
    except ValueError:
        return {"raw": sound(str(part.args))}


def _text(output: object) -> str:
    return output if isinstance(output, str) else result_text(plain_or_text(output))[0]
