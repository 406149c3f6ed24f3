"""What follows from an event of a transcript, for whoever tells it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from watchfloor.protocol.events import Event
from watchfloor.protocol.model import Option


@dataclass(frozen=True, slots=True)
class Tell:
    """Something happened."""

    event: Event


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of something that is being said; `of`: message or reasoning."""

    item: str
    of: str
    text: str


@dataclass(frozen=True, slots=True)
class CutShort:
    """Nothing more comes of these previews."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent asks whether it may do something. `id` is ours, `call` the agent's; `deadline` in ms since 1970 UTC."""

    id: str
    call: str
    action: str
    options: tuple[Option, ...]
    asked_at: int
    deadline: int | None


@dataclass(frozen=True, slots=True)
class NoLongerAsked:
    """The request `id` waits no more. `why` is empty where its call went on: somebody has decided it."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Used:
    """The running totals of tokens have changed."""


Step: TypeAlias = Tell | Piece | CutShort | Asked | NoLongerAsked | Used
