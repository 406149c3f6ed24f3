"""What an operator can do from the keyboard: one table that keys, footer and help are made from.

An action is one intervention (`primitive` set) or something that the application does by itself. Nothing here
says how it is done; the screens hold one handler for each id.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from watchfloor.words import OptionKind, Primitive


class Needs(StrEnum):
    """What must be there for an action to have a target."""

    NOTHING = "nothing"
    SESSION = "session"
    REQUEST = "request"


class Where(StrEnum):
    """A screen on which an action has its key."""

    FLEET = "fleet"
    SESSION = "session"
    INBOX = "inbox"
    SOURCES = "sources"
    AUDIT = "audit"
    HELP = "help"


ALL: Final = frozenset(Where)
FLEET: Final = frozenset({Where.FLEET})
SESSION: Final = frozenset({Where.SESSION})
SOURCES: Final = frozenset({Where.SOURCES})
INBOX: Final = frozenset({Where.INBOX})
FLOOR: Final = frozenset({Where.FLEET, Where.SESSION})
"""The screens on which sessions are looked at and steered."""
CARDS: Final = FLOOR | {Where.INBOX}
"""The screens on which requests are decided."""


class Group(StrEnum):
    """Under which heading the help lists an action, in this order."""

    REPLAY = "Recording"
    DECIDE = "Decide"
    STEER = "Intervene"
    LOOK = "Look"
    APPLICATION = "Console"


def bound(id: str, keys: tuple[str, ...]) -> str:
    """Keys as the toolkit binds them, with commas between them. An action without a key gets one that no terminal
    sends, for the toolkit takes no empty text."""
    return ",".join(keys) or f"unbound+{id}"


class Action(NamedTuple):
    """One thing that a key does.

    `keys` are names as the toolkit spells them; one without any is reached by the command line. `option` narrows a
    decision: the kind of option without which a request has no such key. `detail` is the option of the primitive that
    it needs (pause at once needs `interrupt`). `danger`: asks before it acts. `footer` False: too common, or too rare,
    to spend room on. `where`: the screens that it belongs to; two that share none may share a key.
    `everywhere`: works on every screen, and even where a text box owns all other keys.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: Group
    needs: Needs = Needs.NOTHING
    primitive: Primitive | None = None
    option: OptionKind | None = None
    detail: str | None = None
    danger: bool = False
    footer: bool = False
    where: frozenset[Where] = FLOOR
    everywhere: bool = False

    @property
    def bound(self) -> str:
        """Its keys as the toolkit binds them."""
        return bound(self.id, self.keys)

    @property
    def intervenes(self) -> bool:
        """Does it change something at a source? A console that only reads has no such action."""
        return self.primitive is not None


def _decide(id: str, key: str, label: str, help: str, option: OptionKind | None) -> Action:
    return Action(
        id,
        (key,),
        label,
        help,
        Group.DECIDE,
        Needs.REQUEST,
        Primitive.APPROVE,
        option=option,
        footer=True,
        where=CARDS,
    )


def _steer(
    id: str, key: str, label: str, help: str, primitive: Primitive, *, detail: str | None = None, danger: bool = False
) -> Action:
    return Action(
        id, (key,), label, help, Group.STEER, Needs.SESSION, primitive, detail=detail, danger=danger, footer=True
    )


def _more(
    id: str,
    keys: tuple[str, ...],
    label: str,
    help: str,
    primitive: Primitive,
    *,
    danger: bool = False,
    footer: bool = False,
) -> Action:
    return Action(id, keys, label, help, Group.STEER, Needs.SESSION, primitive, danger=danger, footer=footer)


def _look(
    id: str, keys: tuple[str, ...], label: str, help: str, *, footer: bool = False, where: frozenset[Where] = FLOOR
) -> Action:
    return Action(id, keys, label, help, Group.LOOK, footer=footer, where=where)


ACTIONS: Final[tuple[Action, ...]] = (
    _decide("approve", "a", "approve", "allow what is shown, this once", OptionKind.ALLOW),
    _decide("options", "A", "options", "every option that the request offers", None),
    _decide("deny", "d", "deny", "deny what is shown", OptionKind.DENY),
    _decide("deny_reason", "D", "with reason", "deny, and tell the agent why", OptionKind.DENY),
    Action(
        "answer",
        ("o",),
        "answer",
        "answer the question: choose, or write",
        Group.DECIDE,
        Needs.REQUEST,
        Primitive.ANSWER,
        footer=True,
        where=CARDS,
    ),
    Action(
        "claim",
        ("c",),
        "claim",
        "tell other operators that you take this request, or let go of it: advice, never a lock",
        Group.DECIDE,
        where=CARDS,
    ),
    Action(
        "undo",
        ("u",),
        "undo",
        "take back what was decided for several, for as long as it waits to be sent",
        Group.DECIDE,
        where=CARDS,
    ),
    _steer("send", "s", "send", "write a message to the agent", Primitive.SEND),
    _steer("pause", "p", "pause", "pause where the agent next can", Primitive.PAUSE),
    _steer("pause_now", "P", "pause now", "pause, and cut off what runs", Primitive.PAUSE, detail="interrupt"),
    _steer("interrupt", "x", "interrupt", "end the turn; the agent takes more input", Primitive.INTERRUPT),
    _steer("resume", "r", "resume", "go on, start, retry or relaunch, as the footer says", Primitive.RESUME),
    _steer(
        "reseed",
        "R",
        "reseed",
        "clear, rewind, replace or compact what it remembers, or change its model, after asking",
        Primitive.RESEED,
        danger=True,
    ),
    _steer("stop", "X", "stop", "end the session, after asking", Primitive.STOP, danger=True),
    _more("budget", ("b",), "budget", "limit the tokens or turns that it may use", Primitive.BUDGET),
    _more("fork", ("F",), "fork", "branch off a new session that begins with what this one remembers", Primitive.FORK),
    _more("acts", ("m",), "more", "what only its source can do, after asking", Primitive.ACT, danger=True, footer=True),
    _more("notify", (), "notify", "have another session told when this one rests, ends or fails", Primitive.NOTIFY),
    _more("delete", ("delete",), "delete", "delete the session for good, after asking", Primitive.DELETE, danger=True),
    _look(
        "next",
        ("i",),
        "next request",
        "what waits longest; once the cursor was moved, what its session asks first; in the inbox the next there",
        footer=True,
        where=ALL,
    ),
    _look("inbox", ("w",), "inbox", "all that waits, of every source and child, the riskiest first", where=ALL),
    _look(
        "open",
        ("enter",),
        "open",
        "the request of the selected session, then all of the session; in a log or transcript, the whole of a line",
        where=ALL,
    ),
    _look("back", ("escape",), "back", "close what is open", where=ALL),
    _look("down", ("j", "down"), "down", "next line", where=ALL),
    _look("up", ("k", "up"), "up", "line before", where=ALL),
    _look("page_down", ("pagedown",), "page down", "next page", where=ALL),
    _look("page_up", ("pageup",), "page up", "page before", where=ALL),
    _look(
        "find",
        ("slash",),
        "find",
        "in the help: a key by its words; in the audit: lines by theirs",
        where=frozenset({Where.HELP, Where.AUDIT}),
    ),
    _look("retry", ("t",), "try now", "try to reach the source at once", footer=True, where=SOURCES),
    _look(
        "read_on",
        ("space",),
        "mark",
        "mark the session for an act on several, in the inbox the request; of an open card the next page",
        where=CARDS,
    ),
    _look("mark_all", ("M",), "mark all", "mark every session that is shown, or none", where=FLEET),
    _look(
        "mark_alike",
        ("M",),
        "mark alike",
        "mark all that ask for the very same as this one, word for word, or none",
        footer=True,
        where=INBOX,
    ),
    _look(
        "filter",
        ("slash",),
        "filter",
        "some sessions only: state:waiting cap:pause -label:team=web text; in the log: look for a text; in the inbox:"
        " words of requests, agents, sources, risks",
        where=FLEET | INBOX,
    ),
    _look("sort", ("O",), "order", "sort by the next: attention, name, state, waiting, rate, usage", where=FLEET),
    _look("sort_back", ("I",), "invert", "sort the other way round", where=FLEET),
    _look("group", ("v",), "group", "group by the next: parents, sources, labels, nothing", where=FLEET),
    _look("fold", ("z",), "fold", "put away what is below, or show it again", where=FLEET),
    _look("fold_all", ("Z",), "fold all", "put away all that is below something, or show it again", where=FLEET),
    _look("look_for", ("slash",), "look for", "in the transcript: look for a text", where=SESSION),
    _look("find_next", ("n",), "next found", "in a log or transcript: the next place that holds what was looked for"),
    _look("find_before", ("N",), "found before", "in a log or transcript: the place before that holds it"),
    _look("to_time", ("T",), "to time", "in a log or transcript: go to a time"),
    _look("level", ("l",), "less", "in the log: what is said and done, what matters, or all of it", where=FLEET),
    _look("last", ("end", "G"), "end", "the end: newest event, end of a long command", where=ALL),
    _look("first", ("home", "g"), "start", "the start", where=ALL),
    _look(
        "source_text",
        ("v",),
        "source text",
        "in the transcript: the text as it was written, or its form",
        where=SESSION,
    ),
    _look(
        "mailbox",
        ("M",),
        "mailbox",
        "every message to the session, what became of it, and enter to answer one; or its transcript again",
        where=SESSION,
    ),
    _look("attempt", ("t",), "attempt", "one attempt only, the one before that, or all of them", where=SESSION),
    _look(
        "reveal",
        ("e",),
        "show masked",
        "show what is masked on the card as a secret; this is written down",
        where=CARDS,
    ),
    _look("left", ("left",), "left", "long lines: to the left"),
    _look("right", ("right",), "right", "long lines: to the right"),
    _look("focus_next", ("tab",), "next part", "roster, card, log, facts", where=ALL),
    _look("focus_previous", ("shift+tab",), "part before", "roster, card, log, facts, backwards", where=ALL),
    _look(
        "jump",
        ("apostrophe",),
        "jump",
        "a letter before each line and part in sight: pressing it goes there",
        where=CARDS,
    ),
    _look("facts", ("f",), "facts", "what is known of the session, where the screen has no room beside"),
    _look("copy", ("y",), "copy", "copy the exact action, or the selected line, cleaned", where=ALL),
    Action(
        "help",
        ("question_mark",),
        "keys",
        "every key, and why one does nothing now",
        Group.APPLICATION,
        footer=True,
        where=ALL,
    ),
    Action(
        "command",
        ("colon", "ctrl+p"),
        "command line",
        "any act, session, source, screen or theme, by a few of its letters",
        Group.APPLICATION,
        where=ALL - {Where.HELP},
    ),
    Action(
        "sources",
        ("S",),
        "sources",
        "which hosts are heard, since when, and what could not be read",
        Group.APPLICATION,
        where=CARDS,
    ),
    Action(
        "since",
        ("W",),
        "since",
        "what has happened while nobody could look: requests, failures, states, use",
        Group.APPLICATION,
        where=CARDS,
    ),
    Action(
        "figures",
        ("U",),
        "figures",
        "how requests were decided: how many, how, how fast, and keys that came too soon",
        Group.APPLICATION,
        where=CARDS,
    ),
    Action(
        "audit",
        ("L",),
        "audit",
        "who did what through the consoles of this machine, by hand or by a policy; whether all of it is still there",
        Group.APPLICATION,
        where=CARDS,
    ),
    Action(
        "quit",
        ("q",),
        "quit",
        "leave; says first what goes on and what ends",
        Group.APPLICATION,
        footer=True,
        where=ALL,
    ),
    Action(
        "redraw",
        ("ctrl+l",),
        "redraw",
        "draw the screen once more, after something else wrote to it",
        Group.APPLICATION,
        everywhere=True,
    ),
    Action(
        "suspend",
        ("ctrl+z",),
        "suspend",
        "back to the shell, until its fg",
        Group.APPLICATION,
        everywhere=True,
    ),
    Action("leave", ("ctrl+c", "ctrl+q"), "leave", "close what is asked; quit", Group.APPLICATION, everywhere=True),
)

BY_ID: Final = {action.id: action for action in ACTIONS}


def actions(*, read_only: bool, where: Where | None = None) -> tuple[Action, ...]:
    """The actions of this console, or of one of its screens, in the order of footer and help."""
    return tuple(
        action
        for action in ACTIONS
        if not (read_only and action.intervenes) and (where is None or where in action.where)
    )
