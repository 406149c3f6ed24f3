"""The keys of a recording that is shown: pause, step, speed, and where to go. They work on every screen and act on
nothing but the showing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, cast

from console.actions import Action, Group
from console.fleet.roster.search import TIMES, time_of
from console.keymap import Keymap
from console.screens.fleet.screen import FleetScreen
from console.screens.fleet.writing import Written
from console.screens.pages.help import HelpItem
from watchfloor.text import Clean

if TYPE_CHECKING:
    from textual.app import App

    from console.recording.player import Player
    from widgets.tones import Segment

NOTHING: Final = Clean("")


def _key(id: str, keys: tuple[str, ...], label: str, help: str) -> Action:
    return Action(id, keys, label, help, Group.REPLAY, everywhere=True)


REPLAYS: Final[tuple[Action, ...]] = (
    _key("replay_pause", ("comma",), "pause", "pause the recording, or go on"),
    _key("replay_step", ("full_stop",), "step", "play its next line, and stand there"),
    _key("replay_request", ("right_square_bracket",), "next request", "go to where the next request came"),
    _key("replay_slower", ("less_than_sign",), "slower", "play half as fast"),
    _key("replay_faster", ("greater_than_sign",), "faster", "play twice as fast"),
    _key("replay_time", ("at",), "to time", "go to a time of the recording, back or forth"),
)


def replay_items() -> list[HelpItem]:
    """The keys of a recording, as the help lists them."""
    return [HelpItem(action, NOTHING) for action in REPLAYS]


def replay_keys(keys: Keymap) -> Keymap:
    """The keys of a recording, and these."""
    return Keymap({**keys.keys, **{action.id: action.keys for action in REPLAYS}})


class Replaying:
    """Steers a player by the keys of an application."""

    def __init__(self, app: App[int], player: Player, tz: tzinfo | None = None) -> None:
        """Bind the keys."""
        self._app = app
        self._player = player
        self._tz = tz
        self._does: Final[Mapping[str, Callable[[], None]]] = {
            "replay_pause": player.toggle,
            "replay_step": player.step,
            "replay_request": self._next_request,
            "replay_slower": lambda: player.faster(0.5),
            "replay_faster": lambda: player.faster(2.0),
            "replay_time": self._ask_time,
        }
        for action in REPLAYS:
            app.bind(action.bound, f"replay('{action.id}')", description=action.label, show=False)

    @property
    def words(self) -> str:
        """What is shown, for the bar of every screen."""
        return f"REPLAY {self._player.words(self._tz)}"

    def perform(self, id: str) -> None:
        """Do what a key stands for."""
        self._does[id]()
        if (floor := self._floor) is not None:
            floor.paint(everything=True)

    @property
    def _floor(self) -> FleetScreen | None:
        screen = cast("object", self._app.screen)
        return screen if isinstance(screen, FleetScreen) else None

    def _next_request(self) -> None:
        if not self._player.next_request() and (floor := self._floor) is not None:
            floor.say("no request comes after this", "attention")

    def _ask_time(self) -> None:
        if (floor := self._floor) is not None:
            floor.write(Written(Clean("go to"), self._told, self._taken, lambda: None))

    def _told(self, text: str) -> Segment:
        try:
            time_of(text, self._player.at, self._tz)
        except ValueError:
            return Clean(TIMES), "quiet"
        return NOTHING, "quiet"

    def _taken(self, text: str) -> Clean:
        player = self._player
        try:
            # How long ago is counted from what is shown; a time of day is the last one before the end.
            ago = text.strip()[-1:].isalpha()
            there = time_of(text, player.at if ago else player.tape.ends, self._tz)
        except ValueError as fault:
            return Clean(str(fault))
        player.go_to(there)
        return NOTHING
