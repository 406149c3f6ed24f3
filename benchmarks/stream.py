"""A host that only streams: many sessions, events of them in turn at a steady rate. Costs little beside a real one.

    python -m benchmarks.stream --sessions N --rate EVENTS_PER_S

Its first line is `listening on ws://…`. When it is ended it prints how many events its client took, and in how long.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from typing import Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

_STEP_S: Final = 0.02
_WORDS: Final = "read the log of the importer, count its lines, and say which of them are new since yesterday"
_CAN: Final = {"send": {"priorities": ["normal"]}, "pause": {"interrupt": True}, "resume": {}, "stop": {"kill": True}}


class Stream:
    """Sessions that say one sentence after the other; about each, a summary once a second."""

    def __init__(self, sessions: int, rate: int) -> None:
        self._ids = [f"agent-{n:05}" for n in range(sessions)]
        self._heads = dict.fromkeys(self._ids, 0)
        self._rate = rate
        self._turn = 0
        self._since = 0.0
        self.sent = 0

    def took_s(self) -> float:
        """Seconds since the first event."""
        return time.monotonic() - self._since if self._since else 0.0

    def talk(self, ws: ServerConnection) -> None:
        """Serve one client until it leaves."""
        try:
            for message in ws:
                kind = json.loads(message)["type"]
                if kind == "hello":
                    for frame in self._greeting():
                        ws.send(json.dumps(frame))
                elif kind == "watch":
                    watching = {"type": "watching", "session": "*", "from_pos": self.sent, "through": self.sent}
                    ws.send(json.dumps(watching))
                    self._flow(ws)
        except ConnectionClosed:
            return

    def _greeting(self) -> list[dict[str, Any]]:
        host = {"name": "stream", "version": "1", "instance": "one"}
        welcome = {"type": "welcome", "protocol": "watchfloor.v1", "host": host, "principal": "bench"}
        known = {"lifecycle": "running", "attempt": 1, "epoch": "e", "profile": "p", "since": _now()}
        sessions = [{"id": id, "name": id, **known} for id in self._ids]
        return [
            {**welcome, "role": "operator", "pos": self.sent, "heartbeat_s": 15, "now": _now()},
            {"type": "profiles", "profiles": {"p": {"capabilities": _CAN, "traits": {}}}},
            {"type": "sessions", "sessions": sessions, "listed": True},
        ]

    def _flow(self, ws: ServerConnection) -> None:
        self._since = self._since or time.monotonic()
        due = time.monotonic()
        owed = listed = 0.0
        while True:
            owed += self._rate * _STEP_S
            listed += len(self._ids) * _STEP_S
            said: list[str] = []
            for _ in range(int(owed)):
                said.append(id := self._ids[self._turn % len(self._ids)])
                self._turn += 1
                ws.send(self._event(id))
            owed -= len(said)
            told = said[-int(listed) :] if listed >= 1 else []
            listed -= len(told)
            if told:
                last = {"at": _now(), "kind": "message", "text": _WORDS}
                changed = [{"id": id, "head": self._heads[id], "last": last} for id in told]
                ws.send(json.dumps({"type": "sessions", "sessions": changed}))
            due += _STEP_S
            time.sleep(max(0.0, due - time.monotonic()))

    def _event(self, id: str) -> str:
        self.sent += 1
        self._heads[id] = seq = self._heads[id] + 1
        event = {"kind": "message", "seq": seq, "pos": self.sent, "attempt": 1, "at": _now(), "text": f"{seq} {_WORDS}"}
        return json.dumps({"type": "events", "session": id, "epoch": "e", "events": [event]})


def _now() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description="a host that only streams")
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second")
    args = parser.parse_args()
    stream = Stream(args.sessions, args.rate)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with serve(stream.talk, "127.0.0.1", 0, subprotocols=[Subprotocol("watchfloor.v1")], compression=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"listening on ws://127.0.0.1:{server.socket.getsockname()[1]}", flush=True)
        over.wait()
        print(f"{stream.sent} {stream.took_s():.3f}", flush=True)
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
