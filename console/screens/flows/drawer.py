"""The drawer: one question at a time at the foot of a screen, with every key its own while it is open.

It lies in the screen and not over it. What is asked about stays in sight and alive, and a screen below a see-through
one would be painted whole at every change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from console.fleet.gate import ARM_MS
from console.screens.fleet.sizes import TINY
from console.screens.flows.asking import Answer, Ask, Choice, Drafts
from console.screens.flows.choices import Choices
from console.screens.quiet import WRITING, Quiet
from console.screens.too_small import TOO_SMALL
from watchfloor.text import NOTHING, Clean
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.text_prompt import TextPrompt
from widgets.tones import Says, Segment

_MOST_SHARE: Final = 0.6
_DRAFTS_MOST: Final = 64
_AND: Final = ", "


class Drawer(Vertical):
    """Asks one thing and hands the answer to the `then` of its `Ask`."""

    DEFAULT_CSS = """
    Drawer {
        display: none;
        height: auto;
        background: $wf-card;
        border-top: solid $wf-rule;
        &.-open { display: block; }
        & > StatusBar { background: $wf-card; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", show=False),
        # The focus has nowhere else to go while something is asked.
        Binding("tab", "stay", "Stay", show=False),
        Binding("shift+tab", "back", "Back", show=False),
    ]

    class Closed(Message):
        """The keys belong to the screen again."""

    def __init__(
        self,
        clock: Callable[[], int],
        quiet: Quiet,
        *,
        marks: Marks = UNICODE_MARKS,
        id: str | None = None,
        drafts: dict[Hashable, str] | None = None,
    ) -> None:
        """Create a closed drawer. `clock` gives milliseconds and is never set; `quiet` is told of texts and keys;
        `drafts` are shared with other drawers: what was begun in one is gone on with in the next."""
        super().__init__(id=id)
        self._clock = clock
        self._quiet = quiet
        self._asked_at = 0
        self._marks = marks
        self._ask: Ask | None = None
        self._problem = NOTHING
        self._back: Widget | None = None
        self._drafts: dict[Hashable, str] = {} if drafts is None else drafts

    def compose(self) -> ComposeResult:
        yield StatusBar(id="drawer-title", marks=self._marks)
        yield Choices(self._taken, self._unread, self._pressed, id="drawer-choices", marks=self._marks)
        yield TextPrompt(id="drawer-text", marks=self._marks)
        yield StatusBar(id="drawer-hint", marks=self._marks)

    @property
    def is_open(self) -> bool:
        """Is something being asked? Then all keys belong here."""
        return self._ask is not None

    @property
    def armed(self) -> bool:
        """Does a choice count already? Not in the first moment after it came into sight, nor while one still writes."""
        return self._clock() >= self._asked_at + ARM_MS and not self._quiet.waits

    @property
    def fits(self) -> bool:
        """Is all of it on the screen, and the screen large enough to read in?"""
        inside = not self.region.area or self.screen.region.contains_region(self.region)
        return inside and (not self.screen.has_class(TINY) or (self._ask is not None and self._ask.anywhere))

    def asks_for(self, name: str) -> bool:
        """Is it this that is being asked?"""
        return self._ask is not None and self._ask.name == name

    def ask(self, ask: Ask) -> None:
        """Ask this, in place of whatever is asked now. Owns the keys when this returns."""
        if self._ask is None:
            self._back = self.screen.focused
        self._ask = ask
        self._asked_at = self._clock()
        self._problem = NOTHING
        self._take_keys(ask, self._drafts.get(ask.draft, "") if ask.draft is not None else "")

    def _take_keys(self, ask: Ask, written: str) -> None:
        prompt, choices = self.query_one(TextPrompt), self.query_one(Choices)
        if prompt.is_open:
            prompt.close()
        if ask.text is None and written:
            # What was chosen and not sent, by its label.
            ask = ask._replace(at=next((one.value for one in ask.choices if one.label == written), ask.at))
        choices.show(ask, written.split(_AND))
        self.add_class("-open")
        self.fit_height()
        self.refresh_drawer()
        if ask.text is None:
            self.screen.set_focus(choices, scroll_visible=False)
        else:
            prompt.ask(
                _joined(ask.title),
                initial=Clean(written),
                secret=ask.text.secret,
                enter=ask.enter,
                anew=ask.text.anew and not self._problem,
                back=ask.back is not None,
                past=ask.text.past,
            )

    def fit_height(self) -> None:
        """Give the question the lines that it needs, up to a share of the screen."""
        choices = self.query_one(Choices)
        lines = choices.lines_at(self.screen.size.width)
        choices.styles.height = min(lines, max(3, int(self.screen.size.height * _MOST_SHARE)))
        choices.display = lines > 0

    def refresh_drawer(self) -> None:
        """Take up whether the question still stands."""
        ask = self._ask
        if ask is None:
            return
        if self.query_one(Choices).tell((*ask.about, *ask.live())):
            self.fit_height()
        writes = ask.text is not None
        title, hint = self.query_one("#drawer-title", StatusBar), self.query_one("#drawer-hint", StatusBar)
        said = self._hint(ask)
        title.status, hint.status = Says(ask.title), Says(*said)
        # The prompt brings a title of its own, and the keys that end it.
        title.display, hint.display = not writes, not writes or bool(said[0])

    def _hint(self, ask: Ask) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
        leave: Segment = (Clean("esc  leave it" if ask.choices or ask.text else "esc  close it"), "quiet")
        if ask.back is not None:
            leave = Clean(f"shift+tab  one back, {leave[0]}"), leave[1]
        ended = ask.ended()
        if ended:
            return ((Clean(f"{ended}: nothing can be sent any more"), "attention"),), (leave,)
        choices = self.query_one(Choices)
        if choices.line and choices.at is None:
            keys = " or ".join(choice.key for choice in ask.choices if choice.key)
            said = f'"{choices.line}" is none of the choices: only {keys}, alone; backspace takes it back'
            return ((Clean(said), "attention"),), (leave,)
        if self._problem:
            return ((self._problem, "attention"),), (leave,)
        if ask.text is not None:
            return (), ()
        if ask.many:
            say = f"space marks, enter  {ask.enter}"
        elif ask.picks and len(ask.choices) == 1 and ask.at:
            say = f"enter  {ask.enter}"
        elif ask.picks:
            taken = f"takes {choices.at.label}, {ask.enter}" if choices.at is not None else ask.enter
            say = f"its key or arrows, then enter  {taken}"
        elif ask.cursor:
            say = f"its key, or arrows and enter  {ask.enter}"
        elif ask.choices and (below := choices.below):
            say = f"{' or '.join(below)} stands further down: space shows it"
        elif ask.choices:
            say = "press the key of your choice"
        else:
            say = "arrows and pages scroll"
        return ((Clean(say), "quiet"),), (leave,)

    # -------------------------------------------------------------- answers

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.close()

    def action_back(self) -> None:
        """Ask for what was asked before this, if there was anything."""
        ask = self._ask
        if ask is not None and ask.back is not None:
            self._keep_chosen(ask, self.query_one(Choices).marked() if ask.many else [])
            ask.back()

    @on(TextPrompt.Back)
    def _wanted_back(self, event: TextPrompt.Back) -> None:
        event.stop()
        if event.control.typed:
            self._quiet.broken()
        if self._ask is not None and self._ask.back is not None:
            self._keep(event.text)
            self._ask.back()

    def action_stay(self) -> None:
        """Keep the focus."""

    @on(TextPrompt.Submitted)
    def _written(self, event: TextPrompt.Submitted) -> None:
        event.stop()
        self._quiet.broken()
        ask = self._ask
        if ask is None or ask.text is None:
            return
        problem = ask.text.check(event.text) if self.fits else TOO_SMALL
        if problem or ask.ended():
            # Nothing that was written is lost.
            self._problem = problem
            self._take_keys(ask, event.text)
        else:
            self._give(ask, Answer(text=event.text))

    @on(TextPrompt.Cancelled)
    def _left(self, event: TextPrompt.Cancelled) -> None:
        event.stop()
        if event.control.typed:
            self._quiet.broken()
        self._keep(event.text)
        self.close()

    def _keep(self, written: str) -> None:
        """Keep what was written and not sent, for the same question asked again; never a secret."""
        ask = self._ask
        if ask is None or ask.draft is None or ask.text is None or ask.text.secret:
            return
        self._put(ask.draft, written)

    def _keep_chosen(self, ask: Ask, chosen: Sequence[Choice]) -> None:
        kept = [choice.label for choice in chosen if choice.kept]
        if ask.draft is not None and ask.text is None and kept:
            self._put(ask.draft, _AND.join(kept))

    def _put(self, draft: Hashable, text: str) -> None:
        self._drafts.pop(draft, None)
        if text.strip():
            self._drafts[draft] = text
            if len(self._drafts) > _DRAFTS_MOST:
                del self._drafts[next(iter(self._drafts))]

    def begun(self, whose: tuple[Hashable, ...]) -> dict[str, str]:
        """What is kept for the fields of a form, by their names; see `console.screens.flows.form`."""
        return {
            draft[0]: text
            for draft, text in self._drafts.items()
            if isinstance(draft, tuple) and draft[1:] == whose and isinstance(draft[0], str)
        }

    def forget(self, drafts: Drafts) -> dict[Hashable, str]:
        """These texts are sent; returns them, for the case that they do not arrive."""
        return {draft: self._drafts.pop(draft) for draft in drafts if draft in self._drafts}

    def restore(self, drafts: Mapping[Hashable, str]) -> None:
        """These texts were not delivered: they are there again, unless something newer was written meanwhile."""
        newer = dict(self._drafts)
        self._drafts.clear()
        self._drafts.update(drafts)
        self._drafts.update(newer)

    def _taken(self, places: tuple[int, ...]) -> None:
        ask = self._ask
        if ask is None or ask.text is not None:
            return
        chosen = [ask.choices[place] for place in places]
        self._problem = self._wrong(ask, chosen)
        if self._problem or ask.ended():
            self.refresh_drawer()
        else:
            self._keep_chosen(ask, chosen)
            self._give(ask, Answer(values=tuple(choice.value for choice in chosen)))

    def _pressed(self) -> None:
        # What was wrong with the key before says nothing of this one.
        self._problem = NOTHING
        self._quiet.pressed()

    def _wrong(self, ask: Ask, chosen: Sequence[Choice]) -> Clean:
        """Why this cannot be taken."""
        if not self.fits:
            return TOO_SMALL
        if self._quiet.waits:
            return Clean(WRITING)
        if not self.armed:
            # A key typed ahead was meant for something else.
            return Clean("too soon: again")
        if ask.picks and not chosen:
            return Clean("nothing is chosen: its key or an arrow first, then enter")
        if ask.needed and not chosen:
            return Clean("an answer is required: mark one at least")
        return next((choice.blocked for choice in chosen if choice.blocked), NOTHING)

    def _unread(self) -> None:
        """A choice was wanted that is not wholly in sight; it is now, as far as there is room."""
        self._asked_at = self._clock()
        self._problem = Clean("it was not in sight: read it first, then again")
        self.refresh_drawer()

    def _give(self, ask: Ask, answer: Answer) -> None:
        # Whoever sends it says so; until then nothing that was written is lost.
        self._keep(answer.text)
        ask.then(answer)
        # `then` may have asked the next thing.
        if self._ask is ask:
            self.close()

    def close(self) -> None:
        """Give the keys back to where they were."""
        prompt = self.query_one(TextPrompt)
        if prompt.is_open:
            if prompt.typed:
                self._quiet.broken()
            self._keep(prompt.unsent)
            prompt.close()
        choices = self.query_one(Choices)
        if choices.line and choices.at is None:
            # A text was begun: what is typed on behind it is no key.
            self._quiet.broken()
        self._ask = None
        self._problem = NOTHING
        choices.show(None)
        self.remove_class("-open")
        back, self._back = self._back, None
        self.screen.set_focus(back if back is not None and back.is_attached and back.focusable else None)
        self.post_message(Drawer.Closed())


def _joined(segments: tuple[Segment, ...]) -> Clean:
    return Clean("  ".join(text for text, _ in segments))
