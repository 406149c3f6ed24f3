"""What quitting means for the sessions of a source that this console has started, heard or not."""

from __future__ import annotations

from console.screens.pages.leaving import ask, consequences
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.words import Contact

OURS = frozenset({"demo"})


def said(host: ScriptedHost) -> list[str]:
    return [text for text, _ in consequences(host.fleet, OURS)]


def test_a_demo_that_lives_ends_with_the_console() -> None:
    host = ScriptedHost(name="demo")
    host.session("a", demo=True)
    host.session("b", demo=True)
    assert said(host) == ["with this console end the demo and its 2 agents"]
    host.session("c", demo=True, lifecycle="completed")
    assert said(host) == ["with this console end the demo and its 3 agents"]
    host.contact(Contact.SILENT)
    assert said(host) == ["with this console end the demo and its 3 agents"]


def test_of_a_demo_that_died_nothing_is_claimed() -> None:
    host = ScriptedHost(name="demo")
    host.session("a", demo=True)
    host.contact(Contact.LOST, "it has ended")
    assert said(host) == ["contact with 1 session is lost: its state is not known"]
    host.contact(Contact.CONNECTING, tries=2)
    assert said(host) == ["contact with 1 session is lost: its state is not known"]
    host.contact(Contact.LIVE)
    assert said(host) == ["with this console end the demo and its 1 agent"]


def test_nothing_hangs_on_a_recording() -> None:
    host = ScriptedHost()
    host.session("a")
    told = ask(host.fleet, OURS, lambda: None, replay=True).about
    assert [text for text, _ in told] == ["a recording is shown: nothing that runs is touched"]
