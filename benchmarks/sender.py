"""A host that only sends: traffic that was written beforehand, so that sending it costs little beside taking it in.

    python -m benchmarks.sender --events N --sessions N [--batch N] [--rate EVENTS_PER_S] [--hold] [--past EVENTS]

Its first line is `listening on ws://…`. When a client follows everything it sends all events, at a steady rate or as
fast as they are taken, and then one summary more, of a session that was not there before. It prints the line
`sent EVENTS SECONDS CPU_SECONDS BEGUN_NS` then, and once more when it is ended: the time at which the first was sent is
that of the monotonic clock. With `--hold` it sends nothing by itself.
The first session asks for an approval, which can be given; it has so many events of a past, told in pages.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from benchmarks.traffic import BEGAN, EPOCH, Traffic, make, name
from watchfloor.canonical import subject_digest

_STEP_S: Final = 0.01
_AT_ONCE: Final = 256 * 1024
_A_FRAME: Final = 2_000
"""Sessions that one frame names."""
REQUEST: Final = "r-bench"
_CAN: Final = {
    "send": {"priorities": ["normal"]},
    "pause": {"interrupt": True},
    "resume": {},
    "stop": {"kill": True},
    "approve": {},
}
_OPTIONS: Final = [
    {"id": "yes", "label": "Allow once", "kind": "allow", "scope": "once", "then": "continues"},
    {"id": "no", "label": "Deny", "kind": "deny", "scope": "once", "then": "continues"},
]


class Sender:
    """The host's side of one connection after the other. `past`: how many events the first session had before."""

    def __init__(self, traffic: Traffic, *, rate: int, hold: bool, past: int) -> None:
        self._traffic = traffic
        self._data = traffic.path.read_bytes()
        self._rate = rate
        self._hold = hold
        self._past = past
        self._lock = threading.Lock()
        self._since = 0.0
        self._cpu = 0.0
        self._ended: tuple[float, float] | None = None
        self.sent = 0

    def report(self) -> str:
        """The line that says how much was sent, in how many seconds, with how many of the processor."""
        ended = self._ended or (time.monotonic(), time.process_time())
        took, cpu = (ended[0] - self._since, ended[1] - self._cpu) if self._since else (0.0, 0.0)
        return f"sent {self.sent} {took:.3f} {cpu:.3f} {int(self._since * 1e9)}"

    def talk(self, ws: ServerConnection) -> None:
        """Serve one client until it leaves."""
        over = threading.Event()
        flows: list[threading.Thread] = []
        try:
            for message in ws:
                frame = json.loads(message)
                for answer in self._answers(frame):
                    with self._lock:
                        ws.send(json.dumps(answer))
                if frame["type"] == "watch" and frame["session"] == "*" and not flows and not self._hold:
                    flows.append(threading.Thread(target=self._flow, args=(ws, over), daemon=True))
                    flows[0].start()
        except ConnectionClosed:
            return
        finally:
            over.set()

    # --- what is asked ------------------------------------------------------------------------

    def _answers(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        match frame["type"]:
            case "hello":
                return self._greeting()
            case "watch" if frame["session"] == "*":
                return [
                    {"type": "watching", "session": "*", "from_pos": 0, "through": 0},
                    {"type": "request", "session": name(0), "request": _request()},
                ]
            case "command":
                return self._outcome(frame)
            case "history":
                return [self._page(frame)]
            case _:
                return []

    def _greeting(self) -> list[dict[str, Any]]:
        host = {"name": "sender", "version": "1", "instance": "one"}
        welcome = {"type": "welcome", "protocol": "watchfloor.v1", "host": host, "principal": "bench"}
        known = {"lifecycle": "running", "attempt": 1, "epoch": EPOCH, "profile": "p", "since": _now()}
        ids = [name(n) for n in range(self._traffic.sessions)]
        listed = [{"id": id, "name": id, **known} for id in ids]
        listed[0] |= {"requests": [_ref()], "lifecycle": "waiting", "head": self._past}
        frames = [
            {"type": "sessions", "sessions": listed[at : at + _A_FRAME], "listed": at + _A_FRAME >= len(listed)}
            for at in range(0, len(listed), _A_FRAME)
        ]
        return [
            {**welcome, "role": "operator", "pos": 0, "heartbeat_s": 15, "now": _now()},
            {"type": "profiles", "profiles": {"p": {"capabilities": _CAN, "traits": {}}}},
            *frames,
        ]

    def _outcome(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        outcome = {"type": "outcome", "id": frame["id"], "outcome": "applied", "info": {}, "at": _now()}
        outcome |= {"session": frame["session"], "attempt": 1}
        if frame["do"]["primitive"] != "approve":
            return [outcome]
        decided = {"option": frame["do"]["option"], "kind": "allow", "by": "bench", "at": _now()}
        resolved = {**_request(), "state": "resolved", "decision": decided}
        return [
            outcome,
            {"type": "request", "session": name(0), "request": resolved},
            {"type": "sessions", "sessions": [{"id": name(0), "requests": [], "lifecycle": "running"}]},
        ]

    def _page(self, frame: dict[str, Any]) -> dict[str, Any]:
        last = min(frame.get("before") or self._past + 1, self._past + 1) - 1
        first = max(1, last - frame.get("limit", 500) + 1)
        events = [_told(seq) for seq in range(first, last + 1)]
        about = {"id": frame["id"], "session": frame["session"], "epoch": EPOCH}
        return {"type": "page", **about, "events": events, "first": first, "last": last, "more": first > 1}

    # --- what comes by itself -----------------------------------------------------------------

    def _flow(self, ws: ServerConnection, over: threading.Event) -> None:
        self._since, self._cpu = time.monotonic(), time.process_time()
        try:
            (self._steadily if self._rate else self._at_once)(ws, over)
            self._ended = (time.monotonic(), time.process_time())
            new = {"id": "the-end", "name": "the-end", "lifecycle": "idle", "attempt": 1, "epoch": EPOCH}
            with self._lock:
                ws.send(json.dumps({"type": "sessions", "sessions": [new]}))
            print(self.report(), flush=True)
        except OSError:
            return

    def _at_once(self, ws: ServerConnection, over: threading.Event) -> None:
        """Whole frames, some hundred kilobytes of them at a time; the socket says when there is room."""
        traffic, begin, frame = self._traffic, 0, 0
        while begin < len(self._data) and not over.is_set():
            frame = max(frame + 1, bisect_right(traffic.ends, begin + _AT_ONCE))
            end = traffic.ends[frame - 1]
            self._write(ws, begin, end, traffic.counts[frame - 1])
            begin = end

    def _steadily(self, ws: ServerConnection, over: threading.Event) -> None:
        traffic, begin = self._traffic, 0
        while begin < len(self._data) and not over.is_set():
            owed = int((time.monotonic() - self._since) * self._rate)
            frame = bisect_right(traffic.counts, owed)
            end = traffic.ends[frame - 1] if frame else 0
            if end > begin:
                self._write(ws, begin, end, traffic.counts[frame - 1])
                begin = end
            time.sleep(_STEP_S)

    def _write(self, ws: ServerConnection, begin: int, end: int, count: int) -> None:
        # The frames are there as they go over the wire: the library would only frame them once more.
        with self._lock:
            ws.socket.sendall(memoryview(self._data)[begin:end])
        self.sent = count


def _subject() -> dict[str, Any]:
    return {
        "session": name(0),
        "attempt": 1,
        "id": REQUEST,
        "kind": "approval",
        "actions": [{"tool": "shell", "text": "make deploy", "complete": True}],
        "fields": [],
        "options": _OPTIONS,
    }


def _request() -> dict[str, Any]:
    subject = _subject()
    return {"subject": subject, "digest": subject_digest(subject), "asked_at": BEGAN, "blocks": True, "state": "open"}


def _ref() -> dict[str, Any]:
    return {"id": REQUEST, "kind": "approval", "asked_at": BEGAN, "digest": subject_digest(_subject())}


def _told(seq: int) -> dict[str, Any]:
    text = f"event {seq} of what was before\n- one line of it\n- another line of it\n- and a last one"
    return {"kind": "message", "seq": seq, "attempt": 1, "at": BEGAN, "role": "assistant", "text": text}


def _now() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sender", description="a host that only sends")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=1, help="events a frame")
    parser.add_argument("--rate", type=int, default=0, help="events a second; 0: as fast as they are taken")
    parser.add_argument("--past", type=int, default=0, help="events that the first session has told before")
    parser.add_argument("--hold", action="store_true", help="send nothing but what is asked for")
    args = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with tempfile.NamedTemporaryFile(prefix="watchfloor-bench-") as file:
        events = 0 if args.hold else args.events
        traffic = make(Path(file.name), events=events, sessions=args.sessions, batch=args.batch)
        sender = Sender(traffic, rate=args.rate, hold=args.hold, past=args.past)
    with serve(
        sender.talk,
        "127.0.0.1",
        0,
        subprotocols=[Subprotocol("watchfloor.v1")],
        compression=None,
        ping_interval=None,
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"listening on ws://127.0.0.1:{server.socket.getsockname()[1]} {traffic.digest}", flush=True)
        over.wait()
        print(sender.report(), flush=True)
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
