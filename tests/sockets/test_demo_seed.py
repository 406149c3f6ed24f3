"""The seed fixes what the demo's agents say and ask, and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.sockets.demo_kit import FAST, Operator, demo
from watchfloor.protocol.model import RequestModel
from watchfloor.words import RequestKind, RequestState

MANY = 4
"""Requests of each agent that are looked at."""
ASKING = ("deploy", "migrate", "triage", "docs-guide", "docs-faq")
Script = dict[str, tuple[list[str], list[str]]]


async def attend(operator: Operator) -> None:
    """Allow and answer everything, until each agent has asked enough."""

    def open_ones() -> list[RequestModel]:
        return [request for request in operator.requests.values() if request.state is RequestState.OPEN]

    while any(len(operator.asked(session)) < MANY for session in ASKING):
        await operator.until(open_ones)
        for request in open_ones():
            await settle(operator, request)


async def settle(operator: Operator, request: RequestModel) -> None:
    subject = request.read()
    if subject.kind is RequestKind.APPROVAL:
        await operator.decides(request, "allow")
    elif subject.options:
        await operator.answers(request, option=subject.options[0].id)
    else:
        await operator.answers(request, fields={"title": "Week 1", "queues": ["billing"]})


def words(request: RequestModel) -> str:
    """What a request asks, without the folder, which is another one in each demo."""
    subject = request.read()
    actions = [f"{action.tool} {action.text} {action.diff}" for action in subject.actions]
    return "\n".join([*actions, *(field.label for field in subject.fields), str(request.about)])


async def script(workspace: Path, seed: int) -> Script:
    """The first requests and messages of each agent."""
    async with demo(workspace, seed=seed, rate=100, tempo=FAST) as operator:
        await operator.until(lambda: len(operator.said("narrator")) >= MANY)
        await operator.hushes()
        await attend(operator)
        return {
            session: ([words(request) for request in operator.asked(session)][:MANY], operator.said(session)[:MANY])
            for session in (*ASKING, "narrator")
        }


async def test_the_same_seed_gives_the_same_texts_and_requests(tmp_path: Path) -> None:
    first, second, other = await asyncio.gather(
        script(tmp_path / "a", seed=7), script(tmp_path / "b", seed=7), script(tmp_path / "c", seed=8)
    )
    assert first == second
    assert {len(asked) for asked, _ in first.values()} == {MANY, 0}
    assert {len(said) for _, said in first.values()} == {MANY}
    for session in ("deploy", "triage", "docs-guide", "docs-faq", "narrator"):
        assert first[session] != other[session], session


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


async def test_the_same_seed_gives_the_same_project(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        async with demo(tmp_path / name, seed=seed):
            pass
    a, b, c = (files(tmp_path / name) for name in "abc")
    assert a == b
    assert set(a) == set(c)
    assert {name for name in a if a[name] != c[name]} >= {"data/orders.csv", "content/index.md", "build/site.tar"}
