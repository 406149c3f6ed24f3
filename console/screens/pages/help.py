"""The help: every key, what it does, why it does nothing for the selected session, and a search through all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from console.actions import ACTIONS, Action, Where
from console.keymap import Keymap
from console.screens.availability import Standing
from console.screens.badge import EVERY_S, Badge
from console.screens.bindings import bindings
from watchfloor.text import NOTHING, Clean, clean_line
from widgets.editing import edit
from widgets.facts import FactRow, Facts
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Says, Segment

_LABEL: Final = 15
_MOST: Final = 80
_ELSEWHERE: Final = "only on "
_NOT_OFFERED: Final = "this session does not offer "
_PASSED: Final = frozenset({"next", "inbox"})
"""What is done from here at once: who waits for an answer is not kept waiting by a page."""


class HelpItem(NamedTuple):
    """An action and why it does nothing now; "" where it does."""

    action: Action
    reason: Clean


def help_items(standings: Iterable[tuple[Action, Standing]], *, read_only: bool) -> list[HelpItem]:
    """Every action there is, in the order of the table: those of the screen as they stand, and of the others where
    they belong."""
    stands = {action.id: standing.reason for action, standing in standings}
    items: list[HelpItem] = []
    for action in ACTIONS:
        if action.id in stands:
            reason = stands[action.id]
        elif read_only and action.intervenes:
            reason = Clean("this console only watches")
        elif action.everywhere:
            reason = NOTHING
        else:
            where = " and ".join(where.value for where in Where if where in action.where)
            reason = Clean(f"only on the {where} screen")
        items.append(HelpItem(action, reason))
    return items


def help_rows(
    items: Sequence[HelpItem], keymap: Keymap, legend: Sequence[FactRow] = (), *, asked: str = ""
) -> list[FactRow]:
    """The help as labelled lines, grouped; a key that does nothing says why below. `asked`: only what holds each of
    these words."""
    words = asked.casefold().split()
    rows: list[FactRow] = []
    for group, members in groupby(items, key=lambda item: item.action.group):
        found = [item for item in members if _holds(item, keymap, words)]
        if not found:
            continue
        if rows:
            rows.append((NOTHING, NOTHING, "plain"))
        rows.append((NOTHING, Clean(group.value), "attention"))
        for action, reason in found:
            text = f"{action.label:<{_LABEL}}{action.help}"
            key = keymap.all_shown(action.id) or Clean("no key")
            rows.append((key, Clean(text), "quiet" if reason else "plain"))
            if reason:
                rows.append((NOTHING, Clean(f"{'':<{_LABEL}}{_why(reason)}"), "lost"))
    if legend and not words:
        rows.append((NOTHING, NOTHING, "plain"))
        rows.extend(legend)
    return rows


def _why(reason: Clean) -> str:
    """Why a key does nothing: for good here, or only as things stand."""
    if reason.startswith(_NOT_OFFERED):
        return "not offered by this session"
    return reason if reason.startswith(_ELSEWHERE) else f"not now: {reason}"


def _holds(item: HelpItem, keymap: Keymap, words: Sequence[str]) -> bool:
    action, reason = item
    keys = keymap.all_shown(action.id)
    text = f"{action.id} {action.label} {action.help} {action.group} {reason}".casefold()
    return all(word in text or word in keys.casefold().split() for word in words)


class _Find(Input):
    """The line that is searched by. Its keys are handled in the order in which they came, the ones that end it as
    well."""

    async def on_key(self, event: events.Key) -> None:
        screen = self.screen
        if event.key in ("enter", "escape", "tab", "shift+tab") and isinstance(screen, HelpScreen):
            event.stop()
            event.prevent_default()
            screen.found(keep=event.key != "escape")
        else:
            await edit(self, event)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text_at_cursor(clean_line(event.text.split("\n", 1)[0].rstrip("\r"))[:_MOST])


class HelpScreen(Screen[str | None]):
    """A page over the whole terminal; any of the keys that opened or leave it closes it.

    Dismissed with the id of an action that the screen below is to perform, or None.
    """

    DEFAULT_CSS = """
    HelpScreen {
        background: $wf-ground;
        & > Facts { height: 1fr; }
        & > Input, & > Input:focus {
            display: none;
            height: 1;
            border: none;
            padding: 0 1;
            background: $wf-cursor;
            color: $wf-plain;
        }
        &.-finding > Input { display: block; }
    }
    """

    # A line that has the focus takes the keys, even while it is not to be seen.
    AUTO_FOCUS = ""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HELP)

    def __init__(
        self,
        about: Sequence[Segment],
        items: Sequence[HelpItem],
        keymap: Keymap,
        legend: Sequence[FactRow] = (),
        badge: Badge = tuple,
        *,
        marks: Marks = UNICODE_MARKS,
    ) -> None:
        """Create the page.

        Args:
            about: Whose keys these are, for the line above.
            items: What it lists.
            keymap: The keys.
            legend: What stands below them.
            badge: What every screen says.
            marks: The characters that the widgets draw by themselves.
        """
        super().__init__()
        self._about = tuple(about)
        self._items = tuple(items)
        self._keymap = keymap
        self._legend = tuple(legend)
        self._badge = badge
        self._asked = ""
        self._marks = marks
        self._does: Mapping[str, Callable[[], object]] = {
            "find": self._find,
            "down": lambda: self._scroll(1),
            "up": lambda: self._scroll(-1),
            "page_down": lambda: self._page(1),
            "page_up": lambda: self._page(-1),
            "first": lambda: self._facts.jump(0),
            "last": lambda: self._facts.jump(self._facts.max_scroll_y),
            "focus_next": lambda: None,
            "focus_previous": lambda: None,
            "copy": self._copy,
        }

    def compose(self) -> ComposeResult:
        yield StatusBar(marks=self._marks)
        line = _Find(placeholder="words of what you look for", max_length=_MOST)
        line.cursor_blink = False
        yield line
        yield Facts(marks=self._marks, hang=_LABEL)

    def on_mount(self) -> None:
        """List everything."""
        self._list("")
        self.set_interval(EVERY_S, self._head)

    @property
    def _facts(self) -> Facts:
        return self.query_one(Facts)

    def _list(self, asked: str) -> None:
        rows = help_rows(self._items, self._keymap, self._legend, asked=asked)
        self._facts.facts = rows or [(NOTHING, Clean("no key is described so"), "quiet")]
        self._facts.jump(0)
        self._asked = asked
        self._head()

    def _head(self) -> None:
        asked = self._asked
        find, back = self._keymap.shown("find"), self._keymap.shown("back")
        said: tuple[Segment, ...] = ((Clean(f"only {asked}"), "plain"),) if asked else ()
        keys: tuple[Segment, ...] = ((Clean(f"{find}  find"), "quiet"), (Clean(f"{back}  back"), "quiet"))
        left = (*self._badge(), (Clean("keys"), "attention"), *self._about, *said)
        self.query_one(StatusBar).status = Says(left, keys)

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is looked for, all keys belong to the line."""
        return not (action == "perform" and self.has_class("-finding"))

    def action_perform(self, id: str) -> None:
        """Do what a key stands for; what does not move here closes the page."""
        if id in _PASSED:
            self.dismiss(id)
        else:
            self._does.get(id, self._leave)()

    def _leave(self) -> None:
        if self.query_one(Input).value:
            self.query_one(Input).value = ""
        else:
            self.dismiss(None)

    def _find(self) -> None:
        self.add_class("-finding")
        # At once: the next letter may be in the queue already.
        self.set_focus(self.query_one(Input), scroll_visible=False)

    def found(self, *, keep: bool) -> None:
        """The line was left; what it says holds on, or not."""
        if not keep:
            self.query_one(Input).value = ""
        self.remove_class("-finding")
        self.set_focus(None)

    @on(Input.Changed)
    def _written(self, event: Input.Changed) -> None:
        event.stop()
        self._list(clean_line(event.value))

    def _scroll(self, lines: int) -> None:
        self._facts.jump(self._facts.scroll_offset.y + lines)

    def _page(self, pages: int) -> None:
        self._scroll(pages * self._facts.page_lines())

    def _copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(f"{row[0]:<12}  {row[1]}".rstrip() for row in self._facts.facts))
