"""Which place a path names, seen from where a command runs: inside the workspace, outside of it, part of the system."""

from __future__ import annotations

import re
from posixpath import normpath
from typing import Final

HOME: Final = "~"

_HOME = re.compile(r"^(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%)(?=/|$)")
_SYSTEM = re.compile(
    r"^(?:/etc|/usr(?!/local/src)|/bin|/sbin|/lib\w*|/boot|/sys|/proc|/root|/dev(?!/(?:tcp|udp)/)|/System|/Library|/private/etc|/opt"
    r"|/var/(?!tmp|folders)|[A-Za-z]:\\Windows)(?:[/\\]|$)"
)
_THROWAWAY = re.compile(
    r"^(?:/dev/(?:null|stdout|stderr|stdin|tty|zero|fd/\d+|shm(?:/.*)?)|/tmp(?:/.*)?|/var/tmp(?:/.*)?"
    r"|/private/tmp(?:/.*)?|\$\{?TMPDIR\}?(?:/.*)?)$"
)
_STARTS = re.compile(
    r"^~/(?:\.(?:bashrc|bash_profile|bash_login|profile|zshrc|zprofile|zshenv|gitconfig|inputrc)$|\.ssh/authorized_keys"
    r"|\.ssh/config$|\.config/(?:autostart|systemd|fish)|Library/LaunchAgents)|^/etc/(?:cron|profile|rc\.|systemd|init)"
    r"|^/var/spool/cron|(?:^|/)\.git/hooks/"
)
_SECRET = re.compile(
    r"(?:^|[/@=:~])(?:\.ssh(?:/(?!known_hosts|config$|\S*\.pub$)|$)|id_(?:rsa|ed25519|ecdsa|dsa)$"
    r"|\.env(?!\.(?:example|sample|template|dist|test)$)(?:\.[\w-]+)?$|\.envrc$|\.aws(?:/credentials|$)|\.netrc$|\.pgpass$"
    r"|\.git-credentials$|\.npmrc$|\.pypirc$|\.docker/config\.json$|\.kube(?:/config)?$|\.gnupg(?:/|$)"
    r"|\.config/gcloud(?:/|$)|\.config/gh(?:/|$)|\.azure(?:/|$)|\.vault-token$|\.password-store(?:/|$)"
    r"|etc/g?shadow-?$|etc/sudoers(?:\.d/.*)?$|etc/ssl/private|credentials(?:\.json)?$|secrets?\.(?:ya?ml|json|toml|env)$"
    r"|\S*\.(?:pem|p12|pfx|keystore|jks|kdbx|ppk)$|(?:self|\d+)/environ$|Login Data$|cookies\.sqlite$|login\.keychain)"
)


def secret(path: str) -> bool:
    """Does a file of this name usually hold secrets?"""
    return _SECRET.search(path) is not None


def absolute(path: str, cwd: str | None) -> str | None:
    """The path from the root, or from the home folder as "~/…"; None where that cannot be known."""
    rest = _HOME.sub(HOME, path.strip())
    if not rest or "$" in rest or "`" in rest or "://" in rest:
        return None
    if rest.startswith(HOME):
        return normpath(rest) if "/" in rest else HOME
    if rest.startswith("/"):
        return normpath(rest).replace("//", "/")
    if re.match(r"[A-Za-z]:\\", rest):
        return rest
    return None if cwd is None else normpath(f"{cwd}/{rest}")


def throwaway(path: str) -> bool:
    """Is it a place of which nothing is expected, such as /dev/null or /tmp?"""
    return _THROWAWAY.match(path) is not None


def system(path: str) -> bool:
    """Does it belong to the system?"""
    return _SYSTEM.match(path) is not None and not throwaway(path)


def starts_things(path: str) -> bool:
    """Is what stands there run later by itself, or does it let somebody in?"""
    return _STARTS.search(path) is not None


def outside(path: str, cwd: str | None, workspace: str | None) -> bool:
    """Does the path certainly lead out of the workspace? What cannot be known is not said to."""
    if path.strip() and throwaway(path.strip()):
        return False
    found = absolute(path, cwd)
    if found is None:
        # Without a folder to start from, what climbs higher than it went down is outside of any.
        return normpath(path).startswith("../") or normpath(path) == ".." if path.strip() and cwd is None else False
    if throwaway(found):
        return False
    if workspace is None:
        return system(found) or found.startswith(HOME)
    root = absolute(workspace, None) or workspace
    if found.startswith(HOME) and not root.startswith(HOME):
        # A workspace in the home folder is usually named in full, and what lies in it is not.
        home = re.match(r"^(/home/[^/]+|/Users/[^/]+|/root)(?=/|$)", root)
        if home is None:
            return True
        found = home[1] + found.removeprefix(HOME)
    return not (found == root or found.startswith(root.rstrip("/") + "/"))
