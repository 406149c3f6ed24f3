"""What the function of an agent is given: a `Run`, with the agent's own tools, its instruction, and plan mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from watchfloor.agent.permissions import Call, Grant, Permission, PermissionChecker, granted
from watchfloor.agent.request import ExecuteRequest
from watchfloor.agent.session import DEFAULT_MODE, PLAN_MODE
from watchfloor.agent.tools import ENTER_PLAN, LEAVE_PLAN, RUNS, UNKNOWN, WAITS, Noted, Tool, note, noted, settle
from watchfloor.errors import NoSuchTool, one_line
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.harness.calls import awaited, new_id, plain, result_text
from watchfloor.harness.run import ALLOW_ONCE, DENY, Approval, Returned, Run, ToolOutcome
from watchfloor.protocol.events import ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.model import Action, Option, Subject
from watchfloor.words import OptionKind, RequestKind, Scope

IN_PLAN: Final = "in plan mode nothing is changed: have the plan approved first"
AGAIN: Final = Option(id="allow", label="Run it again", kind=OptionKind.ALLOW)
"""Of a call that may have run already: an answer that was given before that was known is none to this."""
ENTER: Final = Option(id="enter", label="Plan first", kind=OptionKind.ALLOW)
STAY: Final = Option(id="stay", label="Go on as it is", kind=OptionKind.DENY)
APPROVE_PLAN: Final = Option(id="approve", label="Approve the plan", kind=OptionKind.ALLOW)
KEEP_PLANNING: Final = Option(id="keep", label="Keep planning", kind=OptionKind.DENY)


class Keeper(Protocol):
    """Where the permission mode and the grants of a session are kept."""

    def mode(self, session: str) -> tuple[str, str | None]:
        """The mode, and what it was before plan mode."""
        ...

    def set_mode(self, session: str, mode: str, before: str | None) -> None: ...

    def grant(self, session: str, grants: list[Grant]) -> None: ...


AgentTurn = Callable[["Turn", tuple[MailItem, ...]], Awaitable[Returned]]
"""The function of an agent, called once for each turn, and anew where a turn is taken up again."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What all runs of an agent share."""

    function: AgentTurn
    instruction: str | None
    tools: Mapping[str, Tool]
    permissions: PermissionChecker
    keeper: Keeper

    async def __call__(self, run: Run, mail: tuple[MailItem, ...]) -> Returned:
        """As an agent function: calls that a turn before it left open are carried out first."""
        turn = Turn(run, self, mail)
        await turn.take_up()
        returned: Returned = await awaited(self.function, self.function(turn, mail))
        return returned


class Turn(Run):
    """One turn of an agent; see `Run`.

    A turn that was suspended or cut is taken up again by calling the function anew. Calls made by `call` stand in
    `messages`; those that were still open are carried out before the function is called. A function that goes through
    its steps instead of looking at `messages` gives each call a `key`.
    """

    def __init__(self, run: Run, recipe: Recipe, mail: tuple[MailItem, ...]) -> None:
        super().__init__(run._desk)
        self._recipe = recipe
        self._for = mail[0].ref if mail else None
        self._refs = {item.ref for item in mail}
        self._just_done: list[tuple[Noted, ToolOutcome[Any]]] = []

    @property
    def instruction(self) -> str | None:
        """What the agent is told about its role."""
        given = getattr(self._port, "instruction", None)
        return given if isinstance(given, str) else self._recipe.instruction

    @property
    def request(self) -> ExecuteRequest:
        """What this run was asked for by `Agent.execute`; nothing in particular otherwise."""
        given = getattr(self._port, "request", None)
        return given if isinstance(given, ExecuteRequest) else ExecuteRequest()

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._recipe.tools

    @property
    def mode(self) -> str:
        """The permission mode of the session."""
        return self._recipe.keeper.mode(self.session_id)[0]

    # --- tools

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        about: str | None = None,
    ) -> ToolOutcome[Any]:
        """Call one of the agent's tools, where the operators and the permission checker let it; never twice.

        `arguments` are JSON. Call and output become messages of the conversation. What the tool raises is noted as its
        output and raised again. With `key`: what was called by this key in this turn before is not called again, its
        output as text is the value. Raises NoSuchTool, CanonicalError.
        """
        if tool not in self.tools:
            known = ", ".join(sorted(self.tools)) or "none"
            raise NoSuchTool(f"the agent has no tool {tool!r}, it was built with: {known}")
        args: dict[str, Any] = plain(dict(arguments or {}))
        if key is not None and (before := self._by_key(key)) is not None:
            return before
        for at, (done, outcome) in enumerate(self._just_done):
            if key is None and done.tool == tool and done.arguments == args:
                del self._just_done[at]
                return outcome
        ref = new_id("call")
        self.messages.append(note(ref, tool, args, self._for, key))
        self.messages.append(ConversationMessage("tool", WAITS, ref))
        return await self._make(Noted(ref, tool, args, self._for, key, WAITS), about)

    def _by_key(self, key: str) -> ToolOutcome[Any] | None:
        for call in noted(self.messages):
            if call.key == key and call.turn == self._for and not call.open and call.output is not None:
                if call.output.startswith("declined"):
                    return ToolOutcome(ToolStatus.DECLINED, None, call.output)
                return ToolOutcome(ToolStatus.OK, call.output)
        return None

    async def take_up(self) -> None:
        """Carry out the calls that this turn left open when it was suspended or cut; give up those of other turns."""
        for call in noted(self.messages):
            if not call.open:
                continue
            if call.turn not in self._refs or call.tool not in self.tools:
                settle(self.messages, call.ref, "cancelled: its turn was ended before")
                continue
            unknown = call.output == RUNS
            outcome = await self._make(call, UNKNOWN if unknown else None, ask=unknown)
            self._just_done.append((call, outcome))

    async def _make(self, call: Noted, about: str | None, *, ask: bool = False) -> ToolOutcome[Any]:
        tool = self.tools[call.tool]
        action = Action(call=new_id("call"), tool=call.tool, arguments=call.arguments, **self._place())
        allowed = self._permission(call, tool)
        if allowed is Permission.DENY or (self.mode == PLAN_MODE and not tool.reads):
            why = IN_PLAN if self.mode == PLAN_MODE and not tool.reads else "the permission checker denies it"
            return self._refused(call, action, why)

        def approved(approval: Approval | None) -> None:
            settle(self.messages, call.ref, RUNS)
            if approval is not None:
                self._grant(action, approval)

        try:
            outcome = await self._carry_out(
                action,
                lambda: tool.call(**call.arguments),
                gate=ask or allowed is Permission.ASK,
                options=(AGAIN, DENY) if ask else (ALLOW_ONCE, _for_session(call.tool), DENY),
                about=about,
                approved=approved,
            )
        except Exception as error:
            if self._over():
                raise
            settle(self.messages, call.ref, f"error: {one_line(error)}")
            raise
        text = f"declined: {outcome.note or 'denied'}" if not outcome.ok else result_text(outcome.value)[0]
        settle(self.messages, call.ref, text)
        return outcome

    def _over(self) -> bool:
        """Was the turn ended from outside, so that what it left open stays so?"""
        try:
            self._steps.check()
            self._steps.check_stop()
        except Exception:
            return True
        return False

    def _permission(self, call: Noted, tool: Tool) -> Permission:
        what = Call(self.session_id, self.turn, call.tool, call.arguments, tool.reads, tool.gated, self.cwd)
        return self._recipe.permissions.check(what)

    def _refused(self, call: Noted, action: Action, why: str) -> ToolOutcome[Any]:
        self._desk.emit(ToolCall(at=0, call=str(action.call), name=action.tool, arguments=action.arguments))
        self._desk.emit(ToolResult(at=0, call=str(action.call), status=ToolStatus.DECLINED, text=why))
        settle(self.messages, call.ref, f"declined: {why}")
        return ToolOutcome(ToolStatus.DECLINED, None, why)

    def _grant(self, action: Action, approval: Approval) -> None:
        options = (ALLOW_ONCE, _for_session(action.tool), DENY)
        option = next((one for one in options if one.id == approval.option), None)
        subject = Subject(session=self.session_id, id="", kind=RequestKind.APPROVAL, actions=(action,))
        grants = granted(subject, option, turn=self.turn, workspace=self.cwd)
        for grant in grants:
            self._recipe.permissions.grant(grant)
        if grants:
            self._recipe.keeper.grant(self.session_id, grants)

    def _place(self) -> dict[str, Any]:
        return {"cwd": self.cwd} if self.cwd is not None else {}

    # --- plan mode

    async def enter_plan(self, why: str) -> bool:
        """Ask to plan first: nothing is changed until the plan was approved. True where the session plans now."""
        if self.mode == PLAN_MODE:
            return True
        approval = await self.approve(Action(tool=ENTER_PLAN, text=why), options=(ENTER, STAY))
        mode, _ = self._recipe.keeper.mode(self.session_id)
        if approval.allowed and mode != PLAN_MODE:
            self._recipe.keeper.set_mode(self.session_id, PLAN_MODE, mode)
        return approval.allowed

    async def leave_plan(self, plan: str) -> Approval:
        """Have the plan approved: the permission mode is then what it was before."""
        mode, before = self._recipe.keeper.mode(self.session_id)
        if mode != PLAN_MODE:
            return Approval(True)
        approval = await self.approve(Action(tool=LEAVE_PLAN, text=plan), options=(APPROVE_PLAN, KEEP_PLANNING))
        if approval.allowed:
            self._recipe.keeper.set_mode(self.session_id, before or DEFAULT_MODE, None)
        return approval


def _for_session(tool: str) -> Option:
    label = f"Allow {tool} for this session"
    return Option(id="allow_session", label=label, kind=OptionKind.ALLOW, scope=Scope.SESSION, grants=(tool,))
