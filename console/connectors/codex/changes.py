"""Changes of files, as the app-server describes them."""

from __future__ import annotations

from console.connectors.web.reading import Json, part, text


def path_of(change: Json) -> str:
    """The file that changes, and where it moves to."""
    moved = text(change, "kind", "move_path")
    path = text(change, "path") or "a file that is not named"
    return f"{path} -> {moved}" if moved else path


def kind_of(change: Json) -> str:
    """add, delete, update, or "change" where it is not said."""
    return text(change, "kind", "type") or "change"


def diff_of(change: Json) -> str:
    """Its lines with + and -. Of a file that is added or deleted the server gives the bare content."""
    diff = text(change, "diff") or ""
    sign = {"add": "+", "delete": "-"}.get(kind_of(change))
    if sign is None or not diff:
        return diff
    return "".join(f"{sign}{line}" for line in diff.splitlines(keepends=True))


def complete(change: Json) -> bool:
    """Is all of it there that it takes to judge it?"""
    return bool(text(change, "path")) and "kind" in change and text(change, "diff") is not None


def brief(change: Json) -> dict[str, str]:
    """What changes, without the lines."""
    return {"path": path_of(change), "kind": kind_of(part(change))}
