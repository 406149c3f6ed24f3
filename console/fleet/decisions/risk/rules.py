"""Rules that need more than a program's words: what feeds it, where its words lead, what another call did before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from console.fleet.decisions.risk import texts
from console.fleet.decisions.risk.calls import (
    DECODERS,
    INTERPRETERS,
    NETWORK,
    SHELLS,
    Call,
    Locate,
    base,
    calls,
    inner_programs,
    words_of,
)
from console.fleet.decisions.risk.model import Risk, risk
from console.fleet.decisions.risk.places import absolute, outside, secret, starts_things, system, throwaway
from console.fleet.decisions.risk.shell import STEPS, Budget, Word
from console.fleet.decisions.risk.table import table_risks

_OfCall: TypeAlias = Callable[[Call], Iterator[Risk]]

_DATABASES: Final = words_of("psql mysql mariadb sqlite3 mongosh mongo cockroach clickhouse-client duckdb sqlcmd")
_FINDERS: Final = words_of(
    "which command type brew go npm yarn git dirname pwd realpath readlink poetry rustc xcrun pyenv"
)
_PATHLESS: Final = words_of("echo printf ls mkdir test [ [[ ssh ssh-add ssh-keygen ssh-copy-id stat git touch")
"""Programs for which the name of a file with secrets is no reason to worry: they do not give out what is in it."""
_SHOWING: Final = words_of(
    "echo printf print cat tee curl wget http https nc ncat netcat socat ssh mail sendmail logger"
)
_AWKS: Final = words_of("awk gawk mawk nawk")
_DELETING: Final = words_of("rm del rd Remove-Item rimraf trash unlink")
_READERS: Final = words_of("source . eval make")
_CODE_FLAGS: Final = ("-c", "-e", "-r", "--eval", "-E", "--print", "-p")
_DEVICE = re.compile(r"^/dev/(?:sd|hd|vd|nvme|disk|mmcblk|mapper|md|xvd|rdisk)")
_SECRET_NAME = re.compile(r"\$\{?#?!?(\w*(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL)\w*)", re.IGNORECASE)
_FORK_BOMB = re.compile(r"(?<![\w:.])([\w:.]{1,40}+)\s{0,9}\(\)\s{0,9}\{\s{0,9}\1\s{0,9}\|\s{0,9}\1\s{0,9}&")
_EVERYTHING: Final = frozenset(("/", "/*", "~", "~/", "~/*", "$HOME", "$HOME/", "$HOME/*", ".", "./", "*", "..", ".*"))
_WIDE_OPEN = re.compile(r"^0?[0-7]?[0-7][0-7][267]$|^(?:[augo]*o[augo]*|a)?\+[rx]*w[rwx]*$")
_SET_ID = re.compile(r"^[2467]\d{3}$|^[ugoa]*\+[rwx]*s")
_IN_CLUSTER = re.compile(r"-[A-Za-z]+$")


UNJUDGED: Final = (
    f"not judged to its end: more than {STEPS:,} parts, or nested too deeply; what is there may be anything"
)


def shell_risks(text: str, locate: Locate, workspace: str | None, cwd: str | None, budget: Budget) -> Iterator[Risk]:
    """What is risky about a text for a shell that runs in `cwd`."""
    found, judged = calls(text, locate, budget)
    if match := _FORK_BOMB.search(text):
        yield risk("exhausts-machine", "starts itself again and again until nothing works", locate(*match.span()))
    fetched: dict[str, Word] = {}
    assigned: dict[str, Word] = {}
    for call in found:
        yield from table_risks(call)
        for rule in _RULES_OF.get(call.program, _ALWAYS):
            yield from rule(call)
        yield from _programs(call, workspace, cwd, budget)
        yield from _downloads(call, fetched)
        yield from _variables(call, assigned)
        yield from _places(call, workspace, cwd)
        if call.program in ("cd", "pushd"):
            to = call.operands()
            cwd = (absolute(to[0].value, cwd) if to else "~") if len(to) < 2 else cwd
            if to and outside(to[0].value, None if cwd == "~" else cwd, workspace):
                yield risk("works-outside", "goes on outside of the workspace", call.span(to[0]))
    if any(call.program in _DATABASES and call.command.fed_from is not None for call in found):
        for call in found:
            if call.program in ("echo", "printf", "cat"):
                yield from _statements(call)
    if not judged:
        yield risk("unjudged", UNJUDGED, (0, 0))


# --- files ---------------------------------------------------------------------------------


def _deletes(call: Call) -> Iterator[Risk]:
    targets = call.operands()
    deep = call.has("-r", "-R", "--recursive", "-Recurse")
    whole = next((word for word in targets if word.value in _EVERYTHING), None)
    last = targets[-1] if targets else deep
    if whole is not None and (deep is not None or "*" in whole.value):
        yield risk("delete-tree", f"deletes everything in {_named(whole.value)}", call.span(deep, whole))
    elif deep is not None or call.program == "rimraf":
        unknown = next((word for word in targets if word.expands), None)
        if unknown is not None:
            yield risk("delete-tree", "deletes a folder that a variable names", call.span(deep, unknown))
        else:
            yield risk(
                "delete-tree", "deletes a folder" if len(targets) < 2 else "deletes folders", call.span(deep, last)
            )
    elif "xargs" in call.via or "parallel" in call.via or "find" in call.via:
        yield risk("delete-many", "deletes every file that it is told", call.span(last))
    elif wild := next((word for word in targets if not word.quoted and ("*" in word.value or "?" in word.value)), None):
        yield risk("delete-many", "deletes every file of a pattern", call.span(wild))


def _named(place: str) -> str:
    return {"/*": "/", "~/*": "~", "$HOME": "~", "$HOME/*": "~", "*": "this folder", ".": "this folder"}.get(
        place, place
    )


def _overwrites(call: Call) -> Iterator[Risk]:
    for redirect in call.command.redirects if not call.via else ():
        if redirect.op in (">", ">|", ">>", "&>", "<>") and _DEVICE.match(redirect.word.value):
            yield risk("overwrite-disk", "writes straight to a disk", call.span_of(redirect.word))
    if call.program in ("dd", "tee", "cp", "cat"):
        for word in call.args:
            target = word.value.removeprefix("of=")
            if _DEVICE.match(target) and (call.program == "tee" or word.value != target or word is call.args[-1]):
                yield risk("overwrite-disk", "writes straight to a disk", call.span(word))
    if call.program == "truncate":
        yield risk("empty-file", "cuts what is in a file", call.span(*call.args[-1:]))
    elif not call.program or call.program == ":":
        for redirect in call.command.redirects:
            if redirect.op in (">", ">|") and not throwaway(redirect.word.value):
                yield risk("empty-file", "empties a file", call.span_of(redirect.word))
    if call.program == "mv" and call.args and call.args[-1].value == "/dev/null":
        yield risk("delete-many", "moves files to where nothing is kept", call.span(call.args[-1]))


def _modes(call: Call) -> Iterator[Risk]:
    mode = next((word for word in call.args if not word.value.startswith("--")), None)
    if mode is not None and _SET_ID.match(mode.value):
        yield risk("gives-rights", "lets a program run with the rights of its owner", call.span(mode))
    for word in call.args[:2]:
        if _WIDE_OPEN.match(word.value):
            yield risk("gives-rights", "lets everybody write there", call.span(word))
            return
    if (deep := call.has("-R", "--recursive")) is not None:
        yield risk("change-modes", "changes the rights of a whole folder", call.span(deep))


def _kills(call: Call) -> Iterator[Risk]:
    if any(word.value == "-1" for word in call.args[1:]):
        yield risk("kills-processes", "ends every process", call.span(call.args[-1]))


# --- git -----------------------------------------------------------------------------------


def _git(call: Call) -> Iterator[Risk]:
    operands = call.operands("-C", "-c", "--git-dir", "--work-tree")
    verb = operands[0].value if operands else ""
    parted = next((word for word in call.args if word.value == "--"), None)
    if verb == "checkout" and parted is not None and call.args[-1] is not parted:
        yield risk("git-loses-work", "throws away uncommitted changes", call.span(call.args[-1]))
    elif verb == "restore" and len(operands) > 1 and call.has("--staged", "-S") is None:
        yield risk("git-loses-work", "throws away uncommitted changes", call.span(operands[-1]))
    elif verb == "push":
        for word in operands[2:]:
            if word.value.startswith(("+", ":")):
                yield risk("git-rewrites-remote", "rewrites or deletes what others have", call.span(word))
    for word in call.args:
        if (
            word.value.startswith(("core.sshCommand=", "core.hooksPath=", "core.pager=", "core.fsmonitor=", "alias."))
            and "=" in word.value
        ):
            yield risk("runs-later", "lets git run another program", call.span(word))


# --- what is run ---------------------------------------------------------------------------


def _runs_input(call: Call) -> bool:
    """Does the program run what it reads from its input?"""
    if call.program in SHELLS:
        return call.code() is None and (call.has("-s") is not None or not call.files("-o", "-O"))
    if call.program in INTERPRETERS:
        if any(word.value in _CODE_FLAGS or word.value == "-m" for word in call.args):
            return False
        operands = call.operands()
        return not operands or operands[0].value == "-"
    return call.program in ("iex", "Invoke-Expression")


def _runs_what_it_gets(call: Call) -> Iterator[Risk]:
    runs_input = _runs_input(call)
    code = call.code() if call.program in SHELLS else None
    if call.fed & NETWORK and (runs_input or (code is not None and code.expands and not code.inside)):
        yield risk("runs-download", "runs what comes from the network", call.span(*call.args[:1]))
    elif call.fed & DECODERS and runs_input:
        yield risk("decoded-and-run", "runs what was decoded before", call.span(*call.args[:1]))
    if call.name.inside or call.program in SHELLS or call.program in INTERPRETERS or call.program in _READERS:
        inside = inner_programs(iter(call.name.inside) if call.name.inside else call.runs_inside())
        if inside & NETWORK:
            yield risk("runs-download", "runs what comes from the network", call.span(*call.args[-1:]))
        elif inside & DECODERS:
            yield risk("decoded-and-run", "runs what was decoded before", call.span(*call.args[-1:]))


def _remote_shells(call: Call) -> Iterator[Risk]:
    for word in (*call.args, *(redirect.word for redirect in call.command.redirects)):
        if word.value.startswith(("/dev/tcp/", "/dev/udp/")) or ("EXEC:" in word.value and call.program == "socat"):
            yield risk("remote-shell", "connects a shell to somebody outside", call.span_of(word))


def _downloads(call: Call, fetched: dict[str, Word]) -> Iterator[Risk]:
    """Files that were fetched before and are run now."""
    if call.program in NETWORK:
        named = call.after("-o", "-O", "--output", "--output-document")
        targets = [named] if named is not None and not named.value.startswith("-") else []
        targets += [redirect.word for redirect in call.command.redirects if redirect.op in (">", ">>", ">|")]
        if not targets and (call.has("-O", "--remote-name") is not None or call.program == "wget"):
            targets = call.operands()[-1:]
        for word in targets:
            fetched[base(word.value.partition("?")[0])] = word
        return
    if not fetched or not call.program:
        return
    ran = [call.name] if "/" in call.name.value else []
    if call.program in SHELLS or call.program in INTERPRETERS or call.program in _READERS:
        ran = call.operands()[:1]
    elif call.program == "chmod" and any("+" in word.value and "x" in word.value for word in call.args[:1]):
        ran = call.operands()[1:]
    for word in ran:
        if base(word.value) in fetched:
            yield risk("runs-download", "runs a file that was fetched just before", call.span(word))


def _programs(call: Call, workspace: str | None, cwd: str | None, budget: Budget) -> Iterator[Risk]:
    """Code that is given to an interpreter, and statements to a data base."""
    if call.program in _DATABASES:
        yield from _statements(call)
    if call.program not in INTERPRETERS and call.program not in _AWKS:
        return
    pieces = call.operands("-F", "-v", "-f")[:1] if call.program in _AWKS else []
    pieces += [
        call.args[at + 1]
        for at, word in enumerate(call.args[:-1])
        if word.value in _CODE_FLAGS or (_IN_CLUSTER.match(word.value) and word.value[-1] in "ce")
    ]
    if _runs_input(call):
        pieces += [r.word for r in call.command.redirects if r.op in ("<<", "<<-", "<<<")]
    inner: list[tuple[str, Locate]] = []
    for word in pieces:
        yield from texts.programs(word.value, _in(word, call), lambda code, at: inner.append((code, at)))
    for code, at in inner:
        yield from shell_risks(code, at, workspace, cwd, budget)


def _statements(call: Call) -> Iterator[Risk]:
    for word in (*call.args, *(r.word for r in call.command.redirects if r.op in ("<<", "<<-", "<<<"))):
        yield from texts.statements(word.value, _in(word, call))


def _in(word: Word, call: Call) -> Locate:
    def inside(start: int, end: int) -> tuple[int, int]:
        return call.locate(word.at(start), max(word.at(max(start, end - 1)) + 1, word.at(start)))

    return inside


# --- disguises -----------------------------------------------------------------------------


def _spelled(call: Call) -> Iterator[Risk]:
    name = call.name
    if not name.value:
        return
    puzzled = len(name.origin) > 1 and name.value.isalnum() and name.end - name.start - len(name.value) > 1
    if name.spelled or puzzled:
        yield risk(
            "spelled-out", f"writes the name of a program so that it cannot be read: {name.value[:40]}", call.span()
        )
    elif any(word.spelled and word.value.isprintable() for word in call.args):
        word = next(word for word in call.args if word.spelled)
        yield risk("spelled-out", "writes words so that they cannot be read", call.span_of(word))
    elif name.value.startswith("{") and "," in name.value:
        yield risk("spelled-out", "writes a command so that it cannot be read", call.span())
    for word in (name, *call.args):
        if word.expands and re.search(r"\$\{?IFS\b", word.value):
            yield risk("spelled-out", "hides its blanks in a variable", call.span_of(word))
            return


def _variables(call: Call, assigned: dict[str, Word]) -> Iterator[Risk]:
    for word in call.assigned:
        assigned[word.value.partition("=")[0]] = word
    name = call.name
    if not name.expands:
        return
    value = name.value
    if name.inside:
        inside = inner_programs(iter(name.inside))
        if not inside <= _FINDERS and not inside & (NETWORK | DECODERS):
            yield risk("program-in-variable", "what it runs is worked out first", call.span())
        return
    single = re.fullmatch(r"\$\{?(\w+)\}?(/.*)?", value)
    if single is None or (single[1] in assigned and not single[2]):
        yield risk("program-in-variable", "the name of what it runs stands in a variable", call.span())


# --- rights and secrets --------------------------------------------------------------------


def _containers(call: Call) -> Iterator[Risk]:
    if call.has("run", "create") is None:
        return
    for at, word in enumerate(call.args):
        value = word.value.partition("=")[2] if word.value.startswith(("--volume=", "--mount=")) else word.value
        before = call.args[at - 1].value if at else ""
        if before in ("-v", "--volume", "--mount") or value != word.value:
            source = re.sub(r".*(?:source|src)=([^,]*).*", r"\1", value) if "=" in value else value.partition(":")[0]
            if source in ("/", "~", "$HOME") or system(source) or source.endswith("docker.sock"):
                yield risk("container-of-host", "a container with the files of the machine in it", call.span(word))


def _secrets(call: Call) -> Iterator[Risk]:
    if call.program in ("env", "printenv", "set", "export", "declare") and not call.command.redirects:
        alone = not call.args or (call.program != "set" and all(word.value in ("-p", "-x") for word in call.args))
        named = call.program == "printenv" and any(_SECRET_NAME.match(f"${word.value}") for word in call.args)
        if (alone and not call.assigned and len(call.command.words) == 1 + len(call.args)) or named:
            yield risk("secret-shown", "shows the environment, with the secrets in it", call.span(*call.args[-1:]))
    if call.program in _SHOWING:
        sends = call.program in NETWORK or call.program in ("ssh", "mail", "sendmail")
        for word in call.args:
            if word.expands and _SECRET_NAME.search(word.value):
                rule, reason = ("secret-sent", "sends a secret") if sends else ("secret-shown", "shows a secret")
                yield risk(rule, reason, call.span_of(word))
    if call.program in ("curl", "wget", "http", "https"):
        for at, word in enumerate(call.args):
            before = call.args[at - 1].value if at else ""
            flags = (
                "-d",
                "--data",
                "--data-binary",
                "--data-raw",
                "-F",
                "--form",
                "-T",
                "--upload-file",
                "--post-file",
            )
            if before in flags and (
                word.value.startswith("@") or "=@" in word.value or before in ("-T", "--upload-file")
            ):
                yield risk("sends-file", "sends a file over the network", call.span(word))
    if call.program in _PATHLESS:
        return
    for word in (*call.args, *(r.word for r in call.command.redirects if r.op == "<")):
        if not word.value.startswith("--exclude") and secret(word.value):
            yield risk("secret-file", "names a file that usually holds secrets", call.span_of(word))


# --- places --------------------------------------------------------------------------------

_FIRST_IS_NO_PATH: Final = words_of("chmod chown chgrp sed")
_WRITERS: Final = words_of("tee touch mkdir rm rmdir truncate unlink shred chmod chown chgrp mv sed")
_COPIERS: Final = words_of("cp ln install rsync scp")


def _written(call: Call) -> list[Word]:
    """The words that name what the call writes, makes or deletes."""
    # Redirections are those of a command as a whole, whatever it wraps: they are told once.
    redirects = call.command.redirects if not call.via else ()
    found = [r.word for r in redirects if r.op in (">", ">>", ">|", "&>", "&>>", "<>")]
    operands = call.operands("-t", "--target-directory", "-m", "-o", "-g")
    if call.program in _WRITERS:
        if call.program == "sed" and call.has("-i", "--in-place") is None:
            return found
        found += operands[1:] if call.program in _FIRST_IS_NO_PATH else operands
    elif call.program in _COPIERS:
        found += operands[-1:] if len(operands) > 1 else []
        found += [word for word in (call.after("-t", "--target-directory"),) if word is not None]
    elif call.program in ("curl", "wget"):
        named = call.after("-o", "-O", "-P", "--output", "--output-document", "--directory-prefix")
        found += [named] if named is not None and named.value != "-" and not named.value.startswith("http") else []
    elif call.program == "dd":
        found += [word for word in call.args if word.value.startswith("of=")]
    elif call.program in ("unzip", "tar"):
        named = call.after("-d" if call.program == "unzip" else "-C", "--directory")
        reads = call.program == "tar" and not any("x" in word.value for word in call.args[:1])
        found += [named] if named is not None and not reads else []
    return found


def _places(call: Call, workspace: str | None, cwd: str | None) -> Iterator[Risk]:
    for word in _written(call):
        yield from written_risks(word.value.removeprefix("of="), call.span_of(word), workspace, cwd)


def written_risks(path: str, span: tuple[int, int], workspace: str | None, cwd: str | None) -> Iterator[Risk]:
    """What is risky about writing to, or deleting, what stands at a path."""
    found = absolute(path, cwd) or path
    if starts_things(found):
        yield risk("runs-later", "writes what runs later by itself, or lets somebody in", span)
    elif system(found):
        yield risk("writes-system", "writes to a part of the system", span)
    elif outside(path, cwd, workspace):
        yield risk("writes-outside", "writes outside of the workspace", span)


_ALWAYS: Final[tuple[_OfCall, ...]] = (_overwrites, _runs_what_it_gets, _remote_shells, _spelled, _secrets)
_RULES_OF: Final[Mapping[str, tuple[_OfCall, ...]]] = {
    program: (rule, *_ALWAYS)
    for rule, programs in (
        (_deletes, _DELETING),
        (_modes, ("chmod",)),
        (_kills, ("kill",)),
        (_git, ("git",)),
        (_containers, ("docker", "podman", "nerdctl")),
    )
    for program in programs
}


def code_risks(text: str, locate: Locate, workspace: str | None, cwd: str | None, budget: Budget) -> Sequence[Risk]:
    """What is risky about a text that is a program in Python, JavaScript or the like."""
    inner: list[tuple[str, Locate]] = []
    found = list(texts.programs(text, locate, lambda code, at: inner.append((code, at))))
    for code, at in inner:
        found += shell_risks(code, at, workspace, cwd, budget)
    return found
