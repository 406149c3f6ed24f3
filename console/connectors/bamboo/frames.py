"""Frames of the server's WebSocket, and lines of its event streams, as what the feed is told."""

from __future__ import annotations

import json
from typing import Final

from console.connectors.bamboo.feed import Feed
from console.connectors.web.reading import Json, number, parsed, part, text

FEED: Final = "feed"
AGENT: Final = "agent."
PING: Final = '{"type": "ping"}'
PROTOCOL: Final = "bamboo.v2"
SSE_ALIVE: Final = "[KEEPALIVE]"
SSE_DONE: Final = "[DONE]"


def subscribe(channel: str, since: int | None = None) -> str:
    """The frame that opens a channel."""
    frame: dict[str, object] = {"type": "subscribe", "ch": channel}
    return json.dumps(frame if since is None else {**frame, "since": since})


def read(raw: str | bytes) -> Json:
    """A frame, an empty one where nothing can be made of it."""
    try:
        return part(parsed(raw))
    except (ValueError, RecursionError):
        return {}


def is_welcome(frame: Json) -> bool:
    return text(frame, "type") == "welcome"


def is_sign_of_life(frame: Json) -> bool:
    """Says a frame nothing but that the server is there?"""
    return text(frame, "type") == "pong" or text(frame, "control", "type") == "keepalive"


def take(feed: Feed, frame: Json) -> None:
    """Tell the feed what a frame says. Frames of channels that we do not know say nothing."""
    channel, control = text(frame, "ch") or "", part(frame, "control")
    if channel == FEED:
        if text(control, "type") == "feed_reset":
            feed.reset(number(control, "from_seq") or 0)
        elif envelope := part(frame, "event"):
            feed.event(number(frame, "seq") or number(envelope, "seq") or 0, envelope)
    elif channel.startswith(AGENT):
        session = channel.removeprefix(AGENT)
        match text(control, "type"):
            case "terminal":
                feed.channel_over(session)
            case "gap":
                feed.gap(session, number(control, "skipped") or 0)
            case None:
                feed.channel(session, part(frame, "event"))
            case _:
                pass


def take_feed_line(feed: Feed, data: str, id: str) -> None:
    """An event of the server's one stream of durable events."""
    if data == SSE_ALIVE:
        return
    event = read(data)
    if text(event, "type") == "feed_reset":
        feed.reset(number(event, "from_seq") or 0)
    elif event:
        feed.event(number(event, "seq") or (int(id) if id.isdigit() else 0), event)


def take_session_line(feed: Feed, session: str, data: str) -> bool:
    """A line of a session's own stream. False where it was the last."""
    if data == SSE_DONE:
        feed.channel_over(session)
        return False
    if data != SSE_ALIVE:
        feed.channel(session, read(data))
    return True
