"""A real aion server that asks for bearer tokens: who has none, a wrong one, an old one, and a good one."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator

import pytest

from tests.fixtures.aion.keys import served_keys, token
from tests.fixtures.aion.peer import PEERS, Peer, binary_with_auth
from tests.live.aion_kit import VERSION, url
from tests.peers.aion_desk import Desk, desk
from watchfloor.errors import Denied

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        binary_with_auth() is None,
        reason=f"no aion {VERSION} that asks for tokens is installed: see tests/fixtures/aion/README.md",
    ),
]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Peer]:
    home = PEERS / "aion-live" / uuid.uuid4().hex[:8]
    with served_keys() as keys:
        peer = Peer(home, keys=keys)
        try:
            peer.start()
            yield peer
        finally:
            peer.stop(kill=True)
            peer.sweep()
            shutil.rmtree(home, ignore_errors=True)


async def test_a_good_token_is_let_in_to_its_own_namespace(guarded: Peer) -> None:
    async with desk(url(guarded), token=token(namespace="default")) as seen:
        assert seen.connector.core.info.version == VERSION
        assert not seen.source.feed.deploys


@pytest.mark.parametrize(
    "given",
    [None, "not-a-token", token(namespace="default", key=b"another key"), token(namespace="default", lives_s=-60)],
    ids=["none", "nonsense", "another key", "expired"],
)
async def test_any_other_token_is_refused_for_good(guarded: Peer, given: str | None) -> None:
    with pytest.raises(Denied) as denied:
        await Desk(url(guarded), token=given).connect()
    assert not denied.value.retry
    assert given is None or given not in str(denied.value)
