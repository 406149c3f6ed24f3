"""From a key that intervenes to a command that is sent, or to a line that says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from console.actions import Action, Needs
from console.fleet.apply import Fleet
from console.fleet.decisions.former import standing as decided_before
from console.fleet.decisions.former import state_words
from console.fleet.facts import Intent, Refusal, RequestKey, Seen
from console.fleet.gate import Gated
from console.fleet.state import Request, Session, Trail
from console.fleet.views.wording import name_by_key
from console.screens.availability import Standing, standing
from console.screens.fleet.handlers import MOVES, TOGETHER, Decide, Steer
from console.screens.quiet import HOLD_MS
from console.screens.shown import ASKS_ELSE, NOT_ARMED
from watchfloor.text import Clean
from watchfloor.words import OptionKind, OutcomeKind
from widgets.tones import Tone

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from console.screens.board import Board, Holds
    from console.screens.flows import batch
    from console.screens.flows.asking import Ask, Drafts
    from console.screens.sight import Sight
    from watchfloor.connector import Clock


UNDO_S: Final = 3.0
"""How long a decision on several requests waits, to be taken back."""
PASSES: Final = MOVES | {"next", "undo"}
"""Keys that a quick hand presses right behind a decision."""
TAKEN_BACK: Final = Clean("taken back: the next key followed at once, as letters of a text do")
_AFTER_THE_END: Final = frozenset({"approve", "options", "answer"})
"""What a card allows once its end was seen; denying is possible before."""
UNREADABLE: Final = Clean("nothing can be read here")


class Interventions:
    """What the flows of interventions work with (see `console.screens.flows.desk`), and what comes before each."""

    def __init__(
        self,
        hub: Hub,
        board: Board,
        sight: Sight,
        keys: Keymap,
        clock: Clock,
        *,
        show: Callable[[RequestKey], None],
        ask: Callable[[Ask], None],
        uncover: Callable[[], None],
        begin: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Create them.

        Args:
            hub: What commands go through.
            board: Where notices, the card and the drawer are.
            sight: Where the operator looks.
            keys: Which key does what.
            clock: Milliseconds since 1970 UTC.
            show: Puts a request on the card.
            ask: Asks something in the drawer.
            uncover: Puts away what stands where the roster and the card are.
            begin: Runs what has to be waited for.
        """
        self._hub = hub
        self._board = board
        self._sight = sight
        self._keys = keys
        self._clock = clock
        self._show = show
        self.ask = ask
        self._uncover = uncover
        self._begin = begin
        self._by_key = ""
        """The action whose key alone begins what is submitted now; "" where it was asked for."""
        self._hasty: dict[str, tuple[str, int]] = {}
        """What single keys have begun and may be held still: by which action, and when by the clock that is never set.
        """

    # -------------------------------------------------------------- keys

    def followed(self, id: str) -> str:
        """Another key was pressed, for this action or for none: one that comes as fast as letters follow each other
        takes back what the one before has begun. Returns what was taken back, in a word; empty: nothing."""
        quick = {one: by for one, (by, at) in self._hasty.items() if self._hub.steady() - at < HOLD_MS}
        if id in PASSES or all(by == id for by in quick.values()):
            return ""
        self._hasty.clear()
        return ", ".join(trail.verb for trail in self._hub.take_back(quick, TAKEN_BACK))

    def undo(self) -> None:
        """Take back all that waits to be sent."""
        taken = self._hub.take_back(self._hub.held, Clean("taken back before it was sent"))
        said = f"{len(taken):,} taken back before they were sent" if len(taken) > 1 else "taken back before it was sent"
        self.say(Clean(said if taken else "nothing waits to be sent"))

    def decide(self, action: Action, flow: Decide) -> None:
        """Decide the request on the card; without one, show it first."""
        shown = self._sight.shown
        again = f"read it first, then {self._keys.shown(action.id)} again"
        if shown is None:
            waiting = self._sight.waiting_here()
            if waiting is None:
                self._refuse(action, None)
            else:
                self._show(waiting.key)
                self._say_of_card(Clean(again))
            return
        if self._board.covered:
            # Put on the card once more, it begins at its beginning.
            self._board.show_card(None, self._clock())
            self._show(shown.key)
            self._say_of_card(Clean(again), "attention")
            return
        if (behind := self._sight.behind()) is not None:
            self._show(behind.key)
            self._say_of_card(Clean(f"another request: {again}"))
            return
        # What has changed and is not painted yet has not been read either.
        self._board.show_card(shown, self._clock())
        request = self.fleet.requests.get(shown.key)
        session = self.fleet.sessions.get(shown.key.owner)
        if self._sight.outdated:
            self._say_of_card(Clean(f"{self._named(action)}: {self._asks_else()}"), "attention")
        elif request is None or session is None or not request.open:
            self._say_of_card(Clean(f"{self._named(action)}: the request has ended"), "attention")
        elif (first := decided_before(self.fleet, request.key, self._clock())) is not None:
            from console.fleet.decisions.decide import decided_words

            text, stands = Clean(decided_words(first, self._clock())), state_words(first)
            self._say_of_card(text, "attention", lambda: first.active and state_words(first) == stands)
        elif self._refuse(action, request):
            return
        elif action.id in _AFTER_THE_END and (why := self._unread()):
            # What is asked in the drawer could not be sent.
            self._say_of_card(Clean(f"{self._named(action)}: {why}"), "attention")
        elif shown.too_new(self._hub.steady()):
            # In its first moment not even a denial counts, which the gate would let through.
            from console.screens.flows.deciding import decision

            self._hub.refused_early(
                decision(self, session, request), Refusal(OutcomeKind.INVALID, NOT_ARMED, early=True)
            )
            self._say_of_card(Clean(f"{self._named(action)}: {NOT_ARMED}"), "attention")
        else:
            self._at_once(action, lambda: flow(self, session, request))

    def _at_once(self, action: Action, flow: Callable[[], None]) -> None:
        """What this submits before it returns was begun by a single key."""
        self._by_key = action.id
        try:
            flow()
        finally:
            self._by_key = ""

    def steer(self, action: Action, flow: Steer) -> None:
        """Act on the selected session, or on those that are marked where the act counts marks."""
        session = self._sight.session
        marked = self._board.marked() if action.id in TOGETHER else []
        if self._board.covered:
            self._uncover()
            self.say(Clean(f"look first, then {self._keys.shown(action.id)} again"), "attention")
        elif marked:
            from console.screens.flows import batch

            batch.begin(self, action.id, marked)
        elif not self._sight.aimed:
            self.say(Clean("what was selected is no longer shown: select a session first"), "attention")
        elif not self._refuse(action, self._sight.request()) and session is not None:
            self._at_once(action, lambda: flow(self, session))

    def standing(self, action: Action) -> Standing:
        """How an action stands for what the operator looks at, or has marked."""
        if action.id in TOGETHER and (marked := self._board.rows.marked):
            return Standing(True, Clean(f"{action.label} {len(marked):,} marked"))
        stands = self._standing(action, self._sight.request())
        if action.intervenes and self._board.tiny:
            return stands._replace(shown=False, reason=UNREADABLE)
        if action.needs is Needs.REQUEST and self._sight.outdated:
            return stands._replace(reason=Clean("it asks for something else now"))
        if stands.works and action.id in _AFTER_THE_END and (why := self._unread()):
            return stands._replace(reason=why)
        return stands

    def _asks_else(self) -> Clean:
        return Clean(f"{ASKS_ELSE}: {self._keys.shown('open')} shows it")

    def _unread(self) -> Clean:
        """What of the card has not been before the operator; "" where all has, or where there is none to be decided."""
        shown = self._sight.shown
        if shown is None or self._sight.behind() is not None:
            return Clean("")
        if not shown.whole:
            return Clean("read to the end first")
        return self._board.beginning_unseen

    def _standing(self, action: Action, request: Request | None) -> Standing:
        selected, now = self._sight.selected, self._clock()
        return standing(self.fleet, action, selected, request, now, read_only=self._hub.read_only)

    def _refuse(self, action: Action, request: Request | None) -> bool:
        """Say why the action does not work, if it does not."""
        stands = self._standing(action, request)
        if not stands.works:
            selected = self._sight.selected
            self.say(
                Clean(f"{self._named(action)}: {stands.reason}"),
                "attention",
                lambda: self._sight.selected == selected and not self._standing(action, self._sight.request()).works,
            )
        return not stands.works

    def _named(self, action: Action) -> str:
        return f"{self._keys.shown(action.id)} {action.label}"

    # -------------------------------------------------------------- what the flows need

    @property
    def fleet(self) -> Fleet:
        return self._hub.fleet

    @property
    def by(self) -> str:
        return self._hub.by

    @property
    def now(self) -> int:
        return self._clock()

    def say(self, text: Clean, tone: Tone = "plain", holds: Holds | None = None) -> None:
        self._board.say(text, tone, self._clock(), holds)

    def _say_of_card(self, text: Clean, tone: Tone = "plain", holds: Holds = lambda: True) -> None:
        """Say what concerns the request on the card, for as long as it is that one."""
        shown = self._sight.shown
        self.say(text, tone, lambda: self._sight.shown is shown and holds())

    def entered(self, name: str, value: str) -> None:
        self._board.entered[name] = value

    def seen(self, request: Request) -> Seen:
        shown = self._sight.shown
        if shown is not None and shown.key == request.key:
            return shown.seen(self._hub.steady())
        return Seen(request.digest, self._hub.steady(), whole=False)

    def gate(self, intent: Intent) -> Gated | Refusal:
        return self._hub.gate(intent)

    def submit(self, intent: Intent, *, sure: bool = False, drafts: Drafts = ()) -> None:
        gated = self._gated(intent)
        if isinstance(gated, Refusal):
            shown = self._sight.shown
            if gated.early:
                self._hub.refused_early(intent, gated)
            # That it came too early stays true once it would not any more.
            self.say(
                Clean(NOT_ARMED if gated.early else gated.reason),
                "attention",
                lambda: self._sight.shown is shown and (gated.early or isinstance(self._hub.gate(intent), Refusal)),
            )
            return
        session = self.fleet.sessions[gated.target]
        if gated.confirm and not sure:
            from console.screens.flows import steering

            steering.confirm(self, session, gated, lambda: self._renewed(intent, session), drafts=drafts)
            return
        # Begun at once: the next key may be in the queue already, and must find that this one was taken.
        trail = self._hub.begin(intent)
        if trail.id not in self.fleet.trails:
            self.say(trail.reason, "attention")
            return
        texts = self._board.drawer.forget(drafts) if self._board.drawer is not None else {}
        if gated.notes:
            self.say(Clean("; ".join(gated.notes)))
        if self._by_key and not sure and self._waits_safely(session):
            self._hasty[trail.id] = self._by_key, self._hub.steady()
            self._begin(self._dispatch([trail], texts, hold_s=HOLD_MS / 1000))
        else:
            # What was begun before leaves before.
            self._hub.release(self._hasty)
            self._begin(self._dispatch([trail], texts))

    def _waits_safely(self, session: Session) -> bool:
        """May it leave a moment later? Not where it could decide something else by then that has come up meanwhile."""
        profile = self.fleet.profile(session)
        traits = profile.traits if profile is not None else {}
        by_id = traits.get("approval_target", "by_id") == "by_id"
        return by_id and not traits.get("resume_approves") and not traits.get("send_approves")

    def _gated(self, intent: Intent) -> Gated | Refusal:
        """The same as the gate says, with a second key where what is approved is not shown whole."""
        gated, shown = self._hub.gate(intent), self._sight.shown
        if isinstance(gated, Refusal) or shown is None or gated.request != shown.key or not shown.masked:
            return gated
        if gated.option is None or gated.option.kind is OptionKind.DENY:
            return gated
        told = f"what looks like a secret in it is masked; {self._keys.shown('reveal')} on the card shows it"
        return gated._replace(confirm=(*gated.confirm, told))

    async def _dispatch(self, trails: Sequence[Trail], texts: Mapping[Hashable, str], *, hold_s: float = 0.0) -> None:
        """Send these; what one of them did not deliver may be sent once more."""
        await asyncio.gather(*(self._hub.dispatch(trail, hold_s=hold_s) for trail in trails))
        for trail in trails:
            self._hasty.pop(trail.id, None)
        if any(trail.outcome is OutcomeKind.UNDELIVERED for trail in trails) and self._board.drawer is not None:
            self._board.drawer.restore(texts)
            if texts:
                self.say(
                    Clean("not delivered: what you wrote is kept, and stands there when you write again"), "attention"
                )

    def submit_all(self, meant: Sequence[batch.Meant], drafts: Drafts = ()) -> None:
        sent: list[Trail] = []
        kept: list[str] = []
        for one in meant:
            gated = self._hub.gate(one.command)
            why = gated.reason if isinstance(gated, Refusal) else ""
            if not isinstance(gated, Refusal) and gated.confirm != one.confirm:
                why = "what it brings about is not what was told any more"
            if not why:
                trail = self._hub.begin(one.command)
                if trail.id in self.fleet.trails:
                    sent.append(trail)
                    continue
                why = trail.reason
            kept.append(f"{name_by_key(self.fleet.sessions, one.command.target)}: {why}")
        if sent:
            texts = self._board.drawer.forget(drafts) if self._board.drawer is not None else {}
            self._begin(self._dispatch(sent, texts))
        said = f"{meant[0].command.primitive.value} sent to {len(sent):,} of {len(meant):,}"
        tone: Tone = "attention" if kept else "plain"
        # Sent is not done: what is known of them counts on while it stands there.
        from console.screens.flows import batch

        self._board.follow(lambda: (Clean("; ".join([said, *batch.became(sent), *kept])), tone), self._clock())

    def _renewed(self, intent: Intent, session: Session) -> Intent:
        """The command as of now, after the operator has agreed to what it means."""
        request = self.fleet.requests.get(RequestKey(*intent.target, intent.request)) if intent.request else None
        if request is None:
            return intent
        from console.screens.flows.deciding import decision

        return decision(
            self, session, request, option=intent.option, note=intent.note, text=intent.text, fields=intent.fields
        )
