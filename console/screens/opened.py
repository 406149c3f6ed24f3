"""What the screens have in common that open over the fleet: the arrangement of their parts, all there from the
beginning."""

from __future__ import annotations

from abc import abstractmethod

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from console.screens.board import FactsPane
from console.screens.fleet.screen import FleetScreen
from console.screens.fleet.sizes import size_classes
from console.screens.flows.drawer import Drawer
from console.screens.too_small import TooSmall
from widgets.action_footer import ActionFooter
from widgets.line_box import LineBox
from widgets.status_bar import StatusBar


class OpenedScreen(FleetScreen, inherit_bindings=False):
    """A screen over the fleet. Deciding and steering are those of the fleet screen, with the same rules."""

    @abstractmethod
    def main(self) -> ComposeResult:
        """What stands beside the facts."""

    def compose(self) -> ComposeResult:
        self.update_classes(size_classes(self.app.size))
        marks = self._marks
        yield StatusBar(id="top", marks=marks)
        yield StatusBar(id="counts", marks=marks)
        yield LineBox(id="line", marks=marks)
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield from self.main()
            yield FactsPane(id="facts", marks=marks)
        yield TooSmall(id="too-small")
        yield StatusBar(id="trail", marks=marks)
        yield StatusBar(id="notice", marks=marks)
        yield self._board.told
        yield ActionFooter(id="footer", marks=marks)
        yield Drawer(self._hub.steady, self._quiet, id="drawer", marks=marks, drafts=self._setting.drafts)

    async def _furnish(self) -> None:
        """Its parts are there from the beginning: a key that is pressed right behind the one that opened it counts."""

    @property
    def turned(self) -> bool:
        return True

    def shift(self, steps: int) -> None:
        """Nothing stands at the side."""
