"""What can go wrong between a client and a host, each in one line that says what to do.

No message holds the token or anything of an address that may be secret, and nothing that a server said goes
uncleaned.
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import SplitResult, urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.exceptions import NegotiationError as BadNegotiation

from watchfloor.connector import Arrival, Target, Unreadable
from watchfloor.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Denied,
    NoCommonProtocol,
    NotAHost,
    Unreachable,
)
from watchfloor.protocol.codec import MAX_RECEIVE
from watchfloor.protocol.frames import Error, ErrorCode, Welcome
from watchfloor.text import clean_line
from watchfloor.words import PROTOCOL

PORTS: Final = {"ws": 80, "wss": 443}
SHOWN: Final = 200
"""Characters of a server's own words that are shown."""

TOO_LARGE: Final = 1009
"""The close code of a side that was sent a larger frame than it takes."""

_HOW_TO_GIVE_IT: Final = "give it with --token-file, --token-env or token_file in the configuration"
_CLOSE_WORDS: Final = {
    1000: "it ended the connection",
    1001: "it went away",
    1002: "it says that we broke the protocol",
    1006: "the connection broke",
    1008: "it refused what we sent",
    TOO_LARGE: "a frame was too large",
    1011: "it failed",
    1012: "it is shutting down",
    1013: "this client was too slow for it",
}


def check_target(target: Target) -> None:
    """Raise ConfigError when the address or the token cannot be used as they stand."""
    parts = split_url(target.url)
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"the address of {clean_line(target.name)} holds a name or password: {_HOW_TO_GIVE_IT}")
    if parts.fragment:
        raise ConfigError(f"{show_url(parts)}: an address of a host has no part after #")
    token = target.token
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(
            f"the token for {clean_line(target.name)} is empty or holds characters that no token has: "
            "write it alone on one line of its file"
        )


def check_greeting(first: Arrival, where: str) -> None:
    if isinstance(first, Unreadable):
        raise NotAHost(
            f"{where} greets with something unreadable ({cut_words(first.bad.reason)}): is it a Watchfloor host?"
        )
    match first.frame:
        case Welcome(protocol=protocol):
            if protocol != PROTOCOL:
                raise NoCommonProtocol(
                    f"{where} speaks {cut_words(protocol)!r}, this client {PROTOCOL!r}: update the older"
                )
        case Error(code=ErrorCode.NOT_PERMITTED, message=message):
            raise Denied(f"{where} refuses this client: {cut_words(message)}")
        case Error(message=message):
            raise NotAHost(f"{where} does not welcome this client: {cut_words(message)}")
        case _:
            raise NotAHost(f"{where} does not greet as a Watchfloor host does: check the address")


def handshake_failed(error: Exception, target: Target, where: str) -> ConnectionFailed:
    # A redirect is not followed, and comes as what else is wrong with it on top of the status.
    cause = error.__cause__ or error.__context__
    match cause if isinstance(cause, InvalidStatus) else error:
        case InvalidStatus(response=response):
            return _status(response.status_code, target, where)
        case BadNegotiation():
            return NoCommonProtocol(other_protocol(where))
        case ssl.SSLCertVerificationError(verify_message=message):
            return NotAHost(
                f"the certificate of {where} is not trusted ({cut_words(message)}): check name and authority"
            )
        case ssl.SSLError():
            return NotAHost(f"{where} does not speak TLS as expected: if the host serves without TLS, use ws://")
        case _ if isinstance(error, OSError | EOFError) or isinstance(error.__cause__, OSError | EOFError):
            return NotAHost(f"{where} hung up during the handshake: check the address, and ws:// against wss://")
        case _:
            return NotAHost(f"something answers at {where} that is no WebSocket server: check address and port")


def _status(status: int, target: Target, where: str) -> ConnectionFailed:
    match status:
        case 400:
            return NoCommonProtocol(other_protocol(where))
        case 401 if target.token is None:
            return Denied(f"{where} wants a token (401): {_HOW_TO_GIVE_IT}")
        case 401:
            return Denied(f"{where} refuses the token (401): check it, and {_HOW_TO_GIVE_IT}")
        case 403:
            return Denied(
                f"{where} refuses the Origin or Host of this client (403): "
                "use the name that the host was configured with"
            )
        case 429 | 500 | 502 | 503 | 504:
            return Unreachable(f"{where} does not take connections now (HTTP {status}): look at the host")
        case _:
            return NotAHost(f"{where} is a web server, not a Watchfloor host (HTTP {status}): check address and path")


def lost(error: ConnectionClosed, where: str) -> ConnectionLost:
    """What ended the connection. The code is the other side's, or 1006, or ours where we ended it first."""
    ours, theirs = error.sent, error.rcvd
    if ours is not None and not error.rcvd_then_sent and ours.code != 1000:
        words = _CLOSE_WORDS.get(ours.code, "it broke the protocol")
        if ours.code == TOO_LARGE:
            words = f"a frame was larger than {MAX_RECEIVE // 1024**2} MiB"
        ended = ConnectionLost(f"we ended the connection to {where}: {words} ({ours.code})", ours.code)
        # It stands in what the host keeps, and comes again each time.
        ended.retry = ours.code != TOO_LARGE
        return ended
    code = 1006 if theirs is None else theirs.code
    words = _CLOSE_WORDS.get(code, "it ended the connection")
    said = f", {cut_words(theirs.reason)!r}" if theirs is not None and theirs.reason else ""
    return ConnectionLost(f"lost {where}: {words} ({code}{said})", code)


def mute(where: str) -> str:
    hint = ", or it serves without TLS: then use ws://" if where.startswith("wss:") else ""
    return f"{where} accepts connections and says nothing: it is no Watchfloor host, or it hangs{hint}"


def other_protocol(where: str) -> str:
    return f"{where} does not offer {PROTOCOL}: it is another WebSocket server, or a host of another version"


def split_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname and parts.port != 0 and url.split() == [url]:
            return parts
    except ValueError:
        pass
    # Not shown: what cannot be taken apart may hold a secret in any place.
    raise ConfigError("the address is not one of a host: write ws://HOST:PORT or wss://HOST:PORT")


def show_url(parts: SplitResult) -> str:
    """The address without what may be secret in it."""
    place = parts.netloc.rpartition("@")[2]
    return clean_line(f"{parts.scheme}://{place}{parts.path}")


def os_words(error: OSError | None) -> str:
    return (error.strerror if error is not None else None) or "no address"


def cut_words(text: str) -> str:
    shown = clean_line(text)
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
