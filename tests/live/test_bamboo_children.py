"""A real bamboo server of the line that asks a person about the tool calls of children."""

from __future__ import annotations

import asyncio

import pytest

from tests.live.bamboo_kit import ASKS_FOR_CHILDREN, Live, live, needs_older_bamboo
from tests.peers.bamboo_desk import BambooDesk, desk
from tests.sockets.bamboo_kit import native, script, send
from watchfloor.protocol.events import Message, RequestResolved
from watchfloor.protocol.frames import DoApprove
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind

pytestmark = [pytest.mark.live, needs_older_bamboo]


async def asked_for(server: Live, seen: BambooDesk, command: str) -> tuple[str, str]:
    """A parent, and its child that wants to run this command and has to ask."""
    id = await server.session()
    await seen.until(lambda: id in seen.sessions)
    make = {
        "action": "create",
        "title": "Helper",
        "responsibility": "Help",
        "subagent_type": "worker",
        "workspace": str(server.work),
        "prompt": script({"shell": command, "id": "call_child"}, {"say": "A word from the child."}),
    }
    wait = {"call": "SubAgent", "args": {"action": "wait"}, "id": "call_wait"}
    await send(seen, id, {"call": "SubAgent", "args": make, "id": "call_make"}, wait, {"say": "They are done."})
    # In this line a permission has no description of itself: only the two words.
    assert (await seen.decide(id, "Approve")).outcome is OutcomeKind.APPLIED
    await seen.until(lambda: len(seen.sessions) == 2)
    (child,) = seen.sessions.keys() - {id}
    return id, child


@pytest.mark.parametrize("option", ["Approve", "Deny"])
async def test_a_childs_command_runs_only_where_it_was_approved(option: str) -> None:
    async with live(ASKS_FOR_CHILDREN) as server, desk(server.url) as seen:
        file = server.work / "by-child"
        parent, child = await asked_for(server, seen, f"touch {file}")
        _, subject = await seen.asked(child)
        assert (subject.session, subject.actions[0].text) == (child, f"touch {file}")
        assert (seen.summary(child).lifecycle, seen.summary(child).parent) == (Lifecycle.WAITING, parent)
        await native(seen, parent, "waiting for children")
        assert not file.exists()
        assert (await seen.decide(child, option)).outcome is OutcomeKind.APPLIED
        await native(seen, child, "completed")
        await native(seen, parent, "completed")
        assert file.exists() is (option == "Approve")
        kinds = [resolved.option_kind for resolved in seen.of(child, RequestResolved)]
        assert kinds == [OptionKind.ALLOW if option == "Approve" else OptionKind.DENY]
        await seen.until(lambda: "They are done." in [said.text for said in seen.of(parent, Message)])


async def test_of_two_who_decide_for_a_child_one_is_told_that_it_was_not_delivered() -> None:
    async with live(ASKS_FOR_CHILDREN) as server, desk(server.url) as one, desk(server.url, user="bob") as two:
        file = server.work / "by-child"
        _, child = await asked_for(server, one, f"touch {file}")
        (request, subject), (again, _) = await asyncio.gather(one.asked(child), two.asked(child))
        yes = DoApprove(request=subject.id, option="Approve", digest=request.digest)
        no = DoApprove(request=subject.id, option="Deny", digest=again.digest)
        done = await asyncio.gather(one.do(child, yes), two.do(child, no))
        assert sorted(each.outcome for each in done) == [OutcomeKind.APPLIED, OutcomeKind.STALE_TARGET]
        await native(one, child, "completed")
        await native(two, child, "completed")
        assert file.exists() is (done[0].outcome is OutcomeKind.APPLIED)
