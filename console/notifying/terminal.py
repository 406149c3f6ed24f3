"""Alerts as the terminal takes them. Each is one whole sequence without a control character inside, so that it may
stand between any two frames of the screen."""

from __future__ import annotations

from typing import Final

from console.notifying.alerts import TITLE, Alert

_MOST: Final = 200


def sequence(how: str, alert: Alert, *, tmux: bool = False) -> str:
    """The sequence of `osc9` or `osc777` for the alert; inside `tmux` in the envelope that it hands on where it is
    allowed to."""
    # Some terminals take what follows OSC 9 for a command of theirs where that begins with a digit: it never does.
    words = "".join(char for char in f"{TITLE}: {alert.text}" if char.isprintable())[:_MOST]
    if how == "osc777":
        # Its parts end at semicolons.
        body = f"777;notify;{TITLE};{words.removeprefix(f'{TITLE}: ').replace(';', ',')}"
    else:
        body = f"9;{words}"
    told = f"\x1b]{body}\a"
    return "\x1bPtmux;" + told.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else told
