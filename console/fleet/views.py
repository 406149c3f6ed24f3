"""The views that the widgets read, in one place."""

from __future__ import annotations

from console.fleet.card_action import CardAction
from console.fleet.card_options import CardOption
from console.fleet.card_view import Card, CardField, card
from console.fleet.facts_view import FactRow, fact_rows
from console.fleet.log_view import Line, SessionLog
from console.fleet.roster_view import RosterView
from console.fleet.row import Row
from console.fleet.status_view import (
    Status,
    behind_segments,
    contact_segments,
    count_segments,
    need_segments,
    status,
)
from console.fleet.trail_view import trail_segment
from console.fleet.wording import Glyphs, Segment, Tone

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
    "Status",
    "Tone",
    "behind_segments",
    "card",
    "contact_segments",
    "count_segments",
    "fact_rows",
    "need_segments",
    "status",
    "trail_segment",
]
