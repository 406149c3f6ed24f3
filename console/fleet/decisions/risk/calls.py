"""What a shell text runs, one call for each program: wrappers such as sudo taken off, inner shells read as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from console.fleet.decisions.risk.shell import Budget, Command, Script, Word, read

Locate: TypeAlias = Callable[[int, int], tuple[int, int]]
"""Where a part of a text that was read stands in the text that is shown."""


def words_of(listed: str) -> frozenset[str]:
    """The words of a list that is parted by blanks."""
    return frozenset(listed.split())


SHELLS: Final = words_of("sh bash zsh dash ksh ash fish csh tcsh")
INTERPRETERS: Final = words_of(
    "python python2 python3 perl ruby node nodejs deno bun php lua osascript pwsh powershell tclsh Rscript"
)
NETWORK: Final = words_of(
    "curl wget http https fetch nc ncat netcat socat ftp lynx aria2c telnet iwr irm invoke-webrequest"
)
DECODERS: Final = words_of("base64 base32 xxd uudecode openssl rev tr gunzip zcat unxz bunzip2 hexdump od")
_DEPTH: Final = 5
"""Texts that are handed to a shell inside each other, as in sh -c "sh -c …"."""
_LAYERS: Final = 8
_NEAR: Final = 6
"""Members at either end of a pipeline whose texts are looked at, and words of `eval`."""

# The options of each wrapper that take a value, and how many words of its own stand before the program.
_WRAPPERS: Final[dict[str, tuple[str, int]]] = {
    "sudo": ("-u -g -p -C -h -D -R -T -U --user --group --chdir --host", 0),
    "doas": ("-u -C", 0),
    "pkexec": ("--user", 0),
    "env": ("-u -C -S --unset --chdir", 0),
    "nohup": ("", 0),
    "time": ("-f -o", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p", 0),
    "timeout": ("-k -s --signal --kill-after", 1),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "stdbuf": ("-i -o -e", 0),
    "setsid": ("", 0),
    "strace": ("-o -e -p -s", 0),
    "flock": ("-w -E", 1),
    "chroot": ("--userspec --groups", 1),
    "busybox": ("", 0),
    "watch": ("-n --interval", 0),
    "xargs": ("-I -n -P -L -d -E -s -a --replace --max-args --max-procs --delimiter --arg-file", 0),
    "parallel": ("-j --jobs", 0),
    "unshare": ("", 0),
    "nsenter": ("-t --target", 0),
    "caffeinate": ("-t", 0),
    "winpty": ("", 0),
    "npx": ("-p --package", 0),
    "pnpx": ("", 0),
    "bunx": ("", 0),
    "uvx": ("--from --with", 0),
}
_SSH_VALUED: Final = words_of("-i -p -l -o -F -J -L -R -D -b -c -m -w -E")
_CONTAINER_VALUED: Final = words_of(
    "-e --env -v --volume --mount -w --workdir -u --user --name --network --entrypoint -p --publish -n --namespace -c"
    " --container --env-file -h --hostname --platform -l --label -m --memory --cpus"
)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_VERSION = re.compile(r"(python|perl|ruby|node|php|lua)\d[\d.]*$")
_SHORT = re.compile(r"-[A-Za-z0-9]+$")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}$")


@dataclass(frozen=True, slots=True)
class Call:
    """One program that a text runs. `program`: its name without folders; `args`: its words behind that; `via`: the
    wrappers before it; `fed`: programs of the network, and such as decode, whose output it reads; `locate` takes places
    of its words to the shown text.
    """

    program: str
    name: Word
    args: tuple[Word, ...]
    command: Command
    via: tuple[str, ...]
    fed: frozenset[str]
    locate: Locate
    assigned: tuple[Word, ...] = ()

    def has(self, *flags: str) -> Word | None:
        """The first argument that is, or holds, one of these flags; "-r" is held by "-rf", "--x" by "--x=1"."""
        for arg in self.args:
            value = arg.value
            if value == "--":
                return None
            for flag in flags:
                if value == flag or (flag.startswith("--") and value.startswith(f"{flag}=")):
                    return arg
                if len(flag) == 2 and flag[1] in value and _SHORT.match(value):
                    return arg
        return None

    def after(self, *flags: str) -> Word | None:
        """The value of one of these flags: the word behind it."""
        for at, arg in enumerate(self.args[:-1]):
            value = arg.value
            if value in flags or any(
                len(flag) == 2 and value.endswith(flag[1]) and _SHORT.match(value) for flag in flags
            ):
                return self.args[at + 1]
        return None

    def operands(self, *valued: str) -> list[Word]:
        """The arguments that are no options; those of `valued` take the word behind them along."""
        found: list[Word] = []
        skip = only = False
        for arg in self.args:
            if skip:
                skip = False
            elif only or not arg.value.startswith("-") or arg.value == "-":
                found.append(arg)
            elif arg.value == "--":
                only = True
            else:
                skip = arg.value in valued
        return found

    def span(self, *until: Word | None) -> tuple[int, int]:
        """From the program's name to the last of these words, in the shown text."""
        return self.locate(self.name.start, max((self.name.end, *(word.end for word in until if word is not None))))

    def span_of(self, word: Word) -> tuple[int, int]:
        return self.locate(word.start, word.end)

    def code(self) -> Word | None:
        """What a shell is given to run: the word behind -c, or behind letters among which there is a c."""
        for at, arg in enumerate(self.args):
            if arg.value == "--" or not arg.value.startswith(("-", "+")):
                return None
            if _SHORT.match(arg.value) and "c" in arg.value:
                return next((word for word in self.args[at + 1 :] if not word.value.startswith("-")), None)
            if arg.value in ("-o", "-O", "--rcfile", "--init-file"):
                return Call.code(self._from(at + 2))
        return None

    def _from(self, at: int) -> Call:
        return replace(self, args=self.args[at:])

    def files(self, *valued: str) -> list[Word]:
        """The operands but "-", which stands for what the call reads anyway."""
        return [word for word in self.operands(*valued) if word.value != "-"]

    def runs_inside(self) -> Iterator[Script]:
        """What substitutions in its words, and in what it reads, run."""
        for word in (self.name, *self.args, *(redirect.word for redirect in self.command.redirects)):
            yield from word.inside


def here(start: int, end: int) -> tuple[int, int]:
    """The place itself: the text that was read is the one that is shown."""
    return start, end


def calls(text: str, locate: Locate = here, budget: Budget | None = None) -> tuple[list[Call], bool]:
    """Every program that the text runs, in its order, and whether all of it could be judged."""
    walker = _Walker(budget or Budget())
    walker.text(text, locate, 0)
    return walker.found, walker.judged


def inner_programs(scripts: Iterator[Script]) -> frozenset[str]:
    """The names of the programs that these substitutions run, those inside them among them."""
    found: set[str] = set()
    todo = list(scripts)
    while todo:
        for command in todo.pop().commands:
            layers = list(unwrap(command.words))
            if layers:
                found.add(base(layers[-1][0].value))
            for word in (*command.words, *(redirect.word for redirect in command.redirects)):
                todo.extend(word.inside)
    return frozenset(found)


def base(value: str) -> str:
    """The name of a program as it is called: without its folder, and without its version where it has one."""
    name = value.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].removesuffix(".exe")
    versioned = _VERSION.match(name)
    return versioned[1] if versioned is not None else name


def unwrap(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The words of a command from each program on that it runs: of `sudo rm x` those from sudo, and those from rm."""
    rest = list(words)
    for _ in range(_LAYERS):
        while rest and _ASSIGNED.match(rest[0].value) and not rest[0].value.startswith("'"):
            rest.pop(0)
        if not rest:
            return
        yield rest
        name = base(rest[0].value)
        if name == "find":
            at = next((n for n, w in enumerate(rest) if w.value in ("-exec", "-execdir", "-ok", "-okdir")), None)
            if at is None:
                return
            rest = rest[at + 1 :]
            continue
        if name not in _WRAPPERS:
            return
        valued, own = _WRAPPERS[name]
        rest = _behind(rest[1:], valued.split(), own)


def _behind(words: list[Word], valued: Sequence[str], own: int) -> list[Word]:
    at = 0
    while at < len(words):
        value = words[at].value
        if value == "--":
            at += 1
            break
        if value in valued:
            at += 2
        elif (value.startswith("-") and len(value) > 1) or _ASSIGNED.match(value):
            at += 1
        else:
            break
    return words[at + own :]


def matches(value: str, pattern: str) -> bool:
    """Is the word one of "a|b|c*"?"""
    return any(fnmatchcase(value, one) for one in pattern.split("|"))


class _Walker:
    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.found: list[Call] = []
        self.judged = True
        self._printed: dict[int, Command] = {}
        """Commands of which what they print was read as what a shell runs: once, however many shells follow."""

    def text(self, text: str, locate: Locate, depth: int) -> None:
        if depth > _DEPTH:
            self.judged = False
            return
        script = read(text, self.budget)
        self.judged = self.judged and script.judged
        self._script(script, locate, depth)

    def _script(self, script: Script, locate: Locate, depth: int) -> None:
        last: dict[str, int] = {}
        """Where each program that others may not be fed by unseen stands last."""
        for at, command in enumerate(script.commands):
            layers = list(unwrap(command.words))
            made = [base(layer[0].value) for layer in layers]
            first = command.fed_from
            fed = frozenset(name for name, place in last.items() if first is not None and place >= first)
            last.update(dict.fromkeys((name for name in made if name in NETWORK or name in DECODERS), at))
            for scripts in (word.inside for word in (*command.words, *(r.word for r in command.redirects))):
                for inside in scripts:
                    self._script(inside, locate, depth)
            if not layers:
                if command.words or command.redirects:
                    nothing = Word("", command.start, command.start)
                    assigned = tuple(command.words)
                    self.found.append(Call("", nothing, (), command, (), fed, locate, assigned))
                continue
            assigned = tuple(w for w in command.words if w.start < layers[0][0].start)
            of_command = [
                Call(made[n], layer[0], tuple(layer[1:]), command, tuple(made[:n]), fed, locate, assigned)
                for n, layer in enumerate(layers)
            ]
            self.found += of_command
            self._inner(script, at, of_command[-1], depth)

    def _inner(self, script: Script, at: int, call: Call, depth: int) -> None:
        """What the call hands to another shell as a text."""
        if call.program in SHELLS:
            if (code := call.code()) is not None:
                self._word(code, call.locate, depth)
            elif not call.files("-o", "-O") or call.has("-s") is not None:
                for redirect in call.command.redirects:
                    if redirect.op in ("<<", "<<-", "<<<"):
                        self._word(redirect.word, call.locate, depth)
                if call.command.fed_from is not None:
                    self._echoed(script, call.command.fed_from, at, call.locate, depth)
        elif call.program == "eval":
            for word in call.args if 1 < len(call.args) <= _NEAR else ():
                self._word(word, call.locate, depth)
            self._joined(call.args, call, depth)
        elif call.program == "ssh":
            self._joined(_behind(list(call.args), list(_SSH_VALUED), 1), call, depth)
        elif call.program == "su" and (code := call.after("-c", "--command")) is not None:
            self._word(code, call.locate, depth)
        elif call.program == "trap" and call.args:
            self._word(call.args[0], call.locate, depth)
        elif call.program == "alias":
            for word in call.args[:_NEAR]:
                start = word.value.find("=") + 1
                if start:
                    self._piece(word, start, call.locate, depth)
        elif call.program in ("kubectl", "docker", "podman", "oc", "nerdctl"):
            self._in_container(call, depth)
        elif braces := _BRACES.match(call.name.value):
            # {rm,-rf,x} is the same as rm -rf x.
            start, end = call.name.start, call.name.end
            self.text(braces[1].replace(",", " "), lambda _a, _b: call.locate(start, end), depth + 1)

    def _in_container(self, call: Call, depth: int) -> None:
        """What `docker run`, `docker exec` and the like run inside of a container."""
        words = list(call.args)
        verb = next((n for n, word in enumerate(words) if word.value in ("exec", "run")), None)
        # As in `docker compose exec`: further behind it is a word like any other.
        if verb is None or verb > 4:
            return
        rest = _behind(words[verb + 1 :], list(_CONTAINER_VALUED), 1)
        if rest and rest[0].value == "--":
            rest = rest[1:]
        for layer in unwrap(rest):
            inner = replace(call, program=base(layer[0].value), name=layer[0], args=tuple(layer[1:]), fed=frozenset())
            self.found.append(inner)
            if inner.program in SHELLS and (code := inner.code()) is not None:
                self._word(code, call.locate, depth)

    def _piece(self, word: Word, start: int, locate: Locate, depth: int) -> None:
        """The same as `_word` for the end of a word."""

        def inside(begin: int, end: int) -> tuple[int, int]:
            return locate(word.at(start + begin), max(word.at(start + max(begin, end - 1)) + 1, word.at(start + begin)))

        self.text(word.value[start:], inside, depth + 1)

    def _joined(self, words: Sequence[Word], call: Call, depth: int) -> None:
        if len(words) == 1:
            self._word(words[0], call.locate, depth)
        elif words:
            start, end = words[0].start, words[-1].end
            self.text(" ".join(word.value for word in words), lambda _a, _b: call.locate(start, end), depth + 1)

    def _word(self, word: Word, locate: Locate, depth: int) -> None:
        self._piece(word, 0, locate, depth)

    def _echoed(self, script: Script, first: int, at: int, locate: Locate, depth: int) -> None:
        """A text that is printed into a shell is what the shell runs."""
        near = (*range(first, min(first + _NEAR, at)), *range(max(first + _NEAR, at - _NEAR), at))
        for command in (script.commands[place] for place in near):
            if id(command) in self._printed:
                continue
            self._printed[id(command)] = command
            words = command.words
            if words and base(words[0].value) in ("echo", "printf", "cat"):
                if words[0].value != "cat":
                    for word in words[1:]:
                        if not word.value.startswith("-"):
                            self._word(word, locate, depth)
                for redirect in command.redirects:
                    if redirect.op in ("<<", "<<-", "<<<"):
                        self._word(redirect.word, locate, depth)
