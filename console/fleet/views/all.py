"""The views that the widgets read, in one place."""

from __future__ import annotations

from console.fleet.views.card import Card, CardField, card
from console.fleet.views.card_action import CardAction
from console.fleet.views.card_options import CardOption
from console.fleet.views.facts import FactRow, fact_rows
from console.fleet.views.log import Line, SessionLog
from console.fleet.views.roster import RosterView
from console.fleet.views.row import Row
from console.fleet.views.status import (
    behind_segments,
    contact_segments,
    count_segments,
    need_segments,
)
from console.fleet.views.trail import trail_segment
from console.fleet.views.wording import Glyphs, Segment, Tone

__all__ = [
    "Card",
    "CardAction",
    "CardField",
    "CardOption",
    "FactRow",
    "Glyphs",
    "Line",
    "RosterView",
    "Row",
    "Segment",
    "SessionLog",
    "Tone",
    "behind_segments",
    "card",
    "contact_segments",
    "count_segments",
    "fact_rows",
    "need_segments",
    "trail_segment",
]
