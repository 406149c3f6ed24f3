"""Answers that outlive what asked for them.

An agent function that is begun anew, after a crash or after its run was suspended, asks anew what it had asked. What
was decided on the very same thing is not asked of people again: the answer is kept until what it allowed has begun, or
until its turn is over. Each answer serves once. An answer with secrets in it is never written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import JsonValue

from watchfloor.canonical import canonical
from watchfloor.harness.base import Decided
from watchfloor.protocol.model import FieldType, RequestModel, Subject
from watchfloor.words import OptionKind


@dataclass(slots=True)
class KeptAnswer:
    """What was decided on a subject. `calls`: the tool calls that it was about when it was asked last."""

    subject: str
    kind: OptionKind
    by: str
    calls: tuple[str, ...] = ()
    option: str | None = None
    note: str | None = None
    text: str | None = field(default=None, repr=False)
    fields: Mapping[str, JsonValue] | None = field(default=None, repr=False)
    secret: bool = False

    def decided(self, request: str) -> Decided:
        """The answer as that to a request that asks the same."""
        return Decided(request, self.option, self.kind, self.by, self.note, self.text, self.fields)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "kind": self.kind.value, "calls": list(self.calls)}

    @classmethod
    def of_plain(cls, data: Mapping[str, Any]) -> KeptAnswer:
        """Raises TypeError or ValueError for what `plain` did not write."""
        return cls(**{**data, "kind": OptionKind(data["kind"]), "calls": tuple(data["calls"])})


class KeptAnswers:
    """The kept answers of one turn, in their order. What was used stays kept until `begun` or `clear`."""

    def __init__(self) -> None:
        self._all: list[KeptAnswer] = []
        self._used: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._all)

    def plain(self) -> list[dict[str, Any]]:
        """What may be written down."""
        return [answer.plain() for answer in self._all if not answer.secret]

    def answers(self) -> list[KeptAnswer]:
        """What is kept, in its order."""
        return list(self._all)

    def put_back(self, answers: list[KeptAnswer]) -> None:
        """The turn is begun anew: all of them serve once more."""
        self._all, self._used = list(answers), set()

    def keep(self, request: RequestModel, decided: Decided) -> None:
        """A decision was handed over: whoever asks after a crash gets it."""
        subject = request.read()
        rest = (decided.option, decided.note, decided.text, decided.fields)
        answer = KeptAnswer(fingerprint(subject), decided.kind, decided.by, _calls(subject), *rest)
        answer.secret = any(one.type is FieldType.SECRET for one in subject.fields)
        self._used.add(id(answer))
        self._all.append(answer)

    def take(self, subject: Subject) -> KeptAnswer | None:
        """The first answer on the very same thing that has not served yet."""
        if not self._all:
            return None
        wanted = fingerprint(subject)
        for answer in self._all:
            if answer.subject == wanted and id(answer) not in self._used:
                self._used.add(id(answer))
                answer.calls = _calls(subject)
                return answer
        return None

    def begun(self, call: str) -> None:
        """What an answer allowed has begun: it allows nothing more."""
        self._all = [answer for answer in self._all if call not in answer.calls]

    def clear(self) -> None:
        self._all, self._used = [], set()


def fingerprint(subject: Subject) -> str:
    """The same for what asks the same: session, attempt and ids aside."""
    raw = subject.raw()
    same = {name: value for name, value in raw.items() if name in ("kind", "fields", "options")}
    actions = raw.get("actions")
    if isinstance(actions, list):
        same["actions"] = [
            {name: value for name, value in action.items() if name != "call"}
            for action in actions
            if isinstance(action, dict)
        ]
    return hashlib.sha256(canonical(same)).hexdigest()


def _calls(subject: Subject) -> tuple[str, ...]:
    return tuple(action.call for action in subject.actions if action.call is not None)
