"""What a reseed is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from watchfloor.words import ReseedMode

RESEED_WORD: Final[Mapping[str, str]] = MappingProxyType(
    {
        ReseedMode.REPLACE: "replace",
        ReseedMode.REWIND: "rewind",
        ReseedMode.COMPACT: "compact",
        ReseedMode.CLEAR: "clear",
        ReseedMode.MODEL: "model",
    }
)
"""By what it does, as its key says. The primitive itself is a word of the wire."""


def reseed_word(mode: object) -> str:
    """What a reseed of this mode is called; "reseed" where the mode is not known."""
    return RESEED_WORD.get(mode if isinstance(mode, str) else "", "reseed")


RESEED_DOES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ReseedMode.REPLACE: "it begins anew with a text of yours; the conversation is forgotten",
        ReseedMode.REWIND: "it goes on before a message, which is forgotten with all that follows it",
        ReseedMode.COMPACT: "it goes on with a summary; what that leaves out is forgotten",
        ReseedMode.CLEAR: "it begins anew; the whole conversation is forgotten",
        ReseedMode.MODEL: "it goes on with another model; nothing is forgotten",
    }
)
"""What each does and loses, for whoever chooses one."""

RESEED_LOSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ReseedMode.REPLACE: "the agent's conversation is replaced",
        ReseedMode.REWIND: "the agent forgets that message and all that follows it",
        ReseedMode.COMPACT: "the agent forgets what the summary leaves out",
        ReseedMode.CLEAR: "the agent forgets the whole conversation",
    }
)
"""What has to be agreed to, for those that lose something."""


_SEEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        ReseedMode.REPLACE: "the conversation was replaced",
        ReseedMode.REWIND: "the conversation was rewound",
        ReseedMode.COMPACT: "the conversation was compacted",
        ReseedMode.CLEAR: "the conversation was cleared",
        ReseedMode.MODEL: "the model was changed",
    }
)


def reseed_seen(mode: object) -> str:
    """What has happened once a reseed of this mode was seen."""
    return _SEEN.get(mode if isinstance(mode, str) else "", "the conversation was reseeded")


def reseed_words(modes: Iterable[object]) -> str:
    """What may be done of it, such as "clear, compact"; "reseed" where no mode is named."""
    return ", ".join(reseed_word(mode) for mode in modes) or "reseed"
