"""Who looks at a request and who takes it: told to the others, in rounds, for as long as they are there."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.host.glass import OBSERVER, Glass
from tests.unit.host.puppet import approval
from watchfloor.host.clients.presence import CLAIMS_MOST, NAMES_MOST, ROUND_MOST, ROUND_MS
from watchfloor.host.principals import Principal
from watchfloor.protocol.frames import Claim, Error, ErrorCode, Looking, Presence


def _asked(*clients: str, requests: int = 1) -> tuple[Glass, list[str]]:
    glass = Glass()
    session = glass.add()
    ids = [str(glass.ask("s1", approval(session, f"r{n}", call=f"call-{n}")).subject["id"]) for n in range(requests)]
    for client in clients:
        glass.connect(client, Principal(client))
        glass.frames(client)
    return glass, ids


def _told(glass: Glass, conn: str) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [(frame.request, frame.looking, frame.claimed_by) for frame in glass.of(conn, Presence)]


def test_the_others_hear_who_looks_and_who_looks_hears_nothing_of_it() -> None:
    glass, (asked,) = _asked("ann", "bob")
    glass.send("ann", Looking(session="s1", request=asked))
    assert _told(glass, "bob") == [(asked, ("ann",), None)]
    glass.send("bob", Looking(session="s1", request=asked))
    glass.tick(ROUND_MS)
    assert _told(glass, "ann") == [(asked, ("bob",), None)]
    assert len(_told(glass, "bob")) == 1
    glass.send("ann", Looking())
    glass.tick(ROUND_MS)
    assert _told(glass, "bob")[-1] == (asked, (), None)


def test_a_name_that_no_token_vouches_for_says_so() -> None:
    glass, (asked,) = _asked("bob")
    glass.connect("eve", Principal())
    glass.send("eve", Claim(session="s1", request=asked))
    assert _told(glass, "bob") == [(asked, (), "eve (unverified)")]


def test_a_claim_is_told_to_everybody_and_goes_to_whoever_claims_last_until_let_go_of() -> None:
    glass, (asked,) = _asked("ann", "bob")
    glass.send("ann", Claim(session="s1", request=asked))
    assert _told(glass, "ann") == _told(glass, "bob") == [(asked, (), "ann")]
    glass.send("bob", Claim(session="s1", request=asked))
    glass.tick(ROUND_MS)
    assert _told(glass, "ann")[-1] == _told(glass, "bob")[-1] == (asked, (), "bob")
    glass.send("ann", Claim(session="s1", request=asked, release=True))
    glass.tick(ROUND_MS)
    assert len(_told(glass, "bob")) == 2, "what is another's is not let go of"
    glass.send("bob", Claim(session="s1", request=asked, release=True))
    glass.tick(ROUND_MS)
    assert _told(glass, "ann")[-1] == (asked, (), None)


def test_a_claim_is_no_lock() -> None:
    glass, (asked,) = _asked("ann", "bob")
    glass.send("ann", Claim(session="s1", request=asked))
    request = glass.core.session("s1").requests.open()[0]
    do = {"primitive": "approve", "request": asked, "option": "yes", "digest": request.digest}
    assert glass.command("bob", "s1", do).outcome.value == "applied"


def test_what_a_connection_said_ends_with_it() -> None:
    glass, (asked,) = _asked("ann", "bob")
    glass.send("ann", Looking(session="s1", request=asked))
    glass.send("ann", Claim(session="s1", request=asked))
    glass.tick(ROUND_MS)
    assert _told(glass, "bob")[-1] == (asked, ("ann",), "ann")
    glass.core.disconnect("ann")
    assert (glass.core.next_due() or 0) <= glass.now + ROUND_MS
    glass.tick(ROUND_MS)
    assert _told(glass, "bob")[-1] == (asked, (), None)


def test_who_comes_later_is_told_and_of_what_has_ended_nobody_is() -> None:
    glass, (asked,) = _asked("ann")
    glass.send("ann", Claim(session="s1", request=asked))
    glass.connect("bob", Principal("bob"))
    assert _told(glass, "bob") == [(asked, (), "ann")]
    request = glass.core.session("s1").requests.open()[0]
    glass.command("ann", "s1", {"primitive": "approve", "request": asked, "option": "yes", "digest": request.digest})
    glass.connect("cy", Principal("cy"))
    glass.send("bob", Looking(session="s1", request=asked))
    glass.tick(ROUND_MS)
    assert _told(glass, "cy") == []
    assert len(_told(glass, "bob")) == 1


def test_whoever_may_only_watch_may_look_and_not_claim() -> None:
    glass, (asked,) = _asked("ann")
    glass.connect("olga", OBSERVER)
    glass.send("olga", Claim(session="s1", request=asked))
    assert [error.code for error in glass.of("olga", Error)] == [ErrorCode.NOT_PERMITTED]
    glass.send("olga", Looking(session="s1", request=asked))
    assert _told(glass, "ann") == [(asked, ("olga",), None)]


def test_a_request_that_is_not_there_cannot_be_claimed_and_looking_at_it_is_looking_at_none() -> None:
    glass, (asked,) = _asked("ann", "bob")
    glass.send("ann", Looking(session="s1", request=asked))
    for session, request in (("s1", "none"), ("nobody", asked)):
        glass.send("ann", Claim(session=session, request=request))
        glass.send("ann", Looking(session=session, request=request))
    assert [error.code for error in glass.of("ann", Error)] == [ErrorCode.NOT_FOUND] * 2
    glass.tick(ROUND_MS)
    assert _told(glass, "bob") == [(asked, ("ann",), None), (asked, (), None)]


def test_turning_fast_from_one_to_the_next_tells_the_others_little() -> None:
    glass, ids = _asked("ann", "bob", requests=200)
    for turn in range(2_000):
        glass.send("ann", Looking(session="s1", request=ids[turn % 200]))
    assert len(_told(glass, "bob")) == 1
    glass.tick(ROUND_MS)
    # Of those that were looked at and left again nothing is told.
    assert len(_told(glass, "bob")) <= ROUND_MOST
    for _ in range(10):
        glass.tick(ROUND_MS)
    shown = {request: looking for request, looking, _ in _told(glass, "bob")}
    assert [request for request, looking in shown.items() if looking] == [ids[1_999 % 200]]
    assert len(_told(glass, "bob")) <= 3


def test_claims_of_one_connection_are_bounded_by_those_that_are_open() -> None:
    glass, ids = _asked("ann", requests=CLAIMS_MOST + 2)
    for id in ids[: CLAIMS_MOST + 1]:
        glass.send("ann", Claim(session="s1", request=id))
    assert [error.code for error in glass.of("ann", Error)] == [ErrorCode.OTHER]
    request = glass.core.session("s1").requests.open()[0]
    do = {"primitive": "approve", "request": ids[0], "option": "yes", "digest": request.digest}
    assert glass.command("ann", "s1", do).outcome.value == "applied"
    glass.send("ann", Claim(session="s1", request=ids[-1]))
    assert len(glass.of("ann", Error)) == 1


def test_the_names_that_are_told_are_bounded() -> None:
    glass, (asked,) = _asked("ann", *(f"c{n}" for n in range(40)))
    for n in range(40):
        glass.send(f"c{n}", Looking(session="s1", request=asked))
    glass.tick(ROUND_MS)
    assert len(_told(glass, "ann")[-1][1]) == NAMES_MOST


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["look", "away", "claim", "release", "leave", "come", "wait", "decide"]),
        st.sampled_from(["ann", "bob", "cy"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(_STEPS)
def test_in_the_end_everybody_shows_who_looks_and_who_has_claimed(steps: list[tuple[str, str, int]]) -> None:
    glass, ids = _asked("ann", "bob", "cy", requests=3)
    here = {"ann", "bob", "cy"}
    looks: dict[str, str] = {}
    claims: dict[str, str] = {}
    decided: set[str] = set()
    for act, who, n in steps:
        id = ids[n]
        if act == "wait":
            glass.tick(ROUND_MS // 2)
        elif act == "come" and who not in here:
            glass.connect(who, Principal(who))
            here.add(who)
        elif act == "leave" and who in here:
            glass.core.disconnect(who)
            here.discard(who)
            looks.pop(who, None)
            claims = {request: by for request, by in claims.items() if by != who}
        elif act == "decide" and id not in decided and who in here:
            digest = next(r.digest for r in glass.core.session("s1").requests.open() if r.subject["id"] == id)
            glass.command(who, "s1", {"primitive": "approve", "request": id, "option": "yes", "digest": digest})
            decided.add(id)
            claims.pop(id, None)
        elif who in here and act in ("look", "away"):
            looks.pop(who, None)
            if act == "look":
                looks[who] = id
                glass.send(who, Looking(session="s1", request=id))
            else:
                glass.send(who, Looking())
        elif who in here and act in ("claim", "release") and id not in decided:
            if act == "claim":
                claims[id] = who
            elif claims.get(id) == who:
                del claims[id]
            glass.send(who, Claim(session="s1", request=id, release=act == "release"))
    for _ in range(4):
        glass.tick(ROUND_MS)
    for who in here:
        shown = {request: (set(looking), by) for request, looking, by in _told(glass, who)}
        for id in (id for id in ids if id not in decided):
            others = {other for other, at in looks.items() if at == id and other != who}
            assert shown.get(id, (set(), None)) == (others, claims.get(id))
