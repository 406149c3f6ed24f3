"""Who is in the demo, what each of them advertises, and how many events the streamers give out."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.demo.fleet import build
from tests.sockets.demo_kit import NEVER, demo
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import DoInterrupt, DoPause, DoReseed, DoResume, DoSend, DoStop
from watchfloor.words import Lifecycle, OutcomeKind, RequestKind, ReseedMode

ADVERTISED = {
    "deploy": {
        "send",
        "pause",
        "resume",
        "interrupt",
        "stop",
        "reseed",
        "fork",
        "budget",
        "approve",
        "answer",
        "notify",
        "delete",
    },
    "migrate": {"approve"},
    "checksums": {"pause", "resume"},
    "legacy-etl": set(),
    "triage": {"send", "interrupt", "answer"},
    "docs": {"send", "pause", "resume", "stop"},
    "indexer": {"resume", "stop"},
    "narrator": {"send", "pause", "resume", "interrupt", "stop"},
    "linecount": {"pause", "resume", "stop"},
    "docs-guide": {"send", "interrupt", "approve"},
    "docs-faq": {"send", "interrupt", "approve"},
}
ASKING = {"deploy", "migrate", "triage", "docs-guide", "docs-faq"}


async def test_each_agent_advertises_its_own(tmp_path: Path) -> None:
    async with demo(tmp_path) as operator:
        assert {id: operator.capabilities(id) for id in operator.summaries} == ADVERTISED
        assert {summary.demo for summary in operator.summaries.values()} == {True}
        assert {summary.cwd for summary in operator.summaries.values()} == {str(tmp_path)}
        parents = {id: summary.parent for id, summary in operator.summaries.items() if summary.parent is not None}
        assert parents == {"docs-guide": "docs", "docs-faq": "docs"}


async def test_the_first_requests_stand_without_any_rest_before_them(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        await operator.until(lambda: {r.read().session for r in operator.requests.values()} == ASKING)
        await operator.until(lambda: operator.summaries["indexer"].lifecycle is Lifecycle.FAILED)
        kinds = {request.read().session: request.read().kind for request in operator.requests.values()}
        assert {session for session, kind in kinds.items() if kind is RequestKind.QUESTION} == {"triage"}
        script = operator.asked("migrate")[0].read().actions[0].text or ""
        assert len(script.splitlines()) > 40


async def test_what_is_not_advertised_is_refused(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        for do in (
            DoSend(text="hello"),
            DoPause(),
            DoResume(),
            DoInterrupt(),
            DoStop(),
            DoReseed(mode=ReseedMode.CLEAR),
        ):
            outcome = await operator.does("legacy-etl", do)
            assert outcome.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED, do
        assert operator.summaries["legacy-etl"].lifecycle is Lifecycle.RUNNING


@pytest.mark.parametrize("agents", [1, 8])
async def test_the_named_ones_are_always_there(tmp_path: Path, agents: int) -> None:
    async with demo(tmp_path, agents=agents) as operator:
        assert set(operator.summaries) == set(ADVERTISED)


async def test_copies_of_the_streamer_share_its_rate(tmp_path: Path) -> None:
    rate, wanted = 100.0, 300
    async with demo(tmp_path, agents=20, rate=rate, tempo=NEVER) as operator:
        copies = {f"narrator-{number}" for number in range(2, 14)}
        assert set(operator.summaries) == {*ADVERTISED, *copies}
        for copy in copies:
            assert operator.capabilities(copy) == ADVERTISED["narrator"]

        def streamed() -> list[tuple[str, Event]]:
            return [arrival for arrival in operator.arrivals if arrival[0].startswith("narrator")]

        await operator.until(lambda: len(streamed()) >= wanted)
        arrivals = streamed()
        took_s = (max(e.at for _, e in arrivals) - min(e.at for _, e in arrivals)) / 1000
        assert 0.5 * rate < len(arrivals) / took_s < 1.5 * rate
        assert {session for session, _ in arrivals} == {"narrator", *copies}
        deltas = sum(isinstance(event, Delta) for _, event in arrivals)
        assert len(arrivals) / 2 < deltas < len(arrivals)


@pytest.mark.parametrize(("rate", "tempo"), [(0.0, 1.0), (-1.0, 1.0), (20.0, 0.0)])
async def test_a_rate_or_tempo_of_nothing_is_refused(tmp_path: Path, rate: float, tempo: float) -> None:
    async with Host() as host:
        with pytest.raises(ValueError, match="above 0"):
            await build(host, workspace=tmp_path, rate=rate, tempo=tempo)
        assert len(host.core.roster) == 0
