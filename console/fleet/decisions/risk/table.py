"""Programs that are harmful by what they are told to do: a table, a line for each way of saying it.

`words` are the operands that it begins with, in their order ("a|b" either, "*" as in file names), `flags` those of
which one has to be there ("-f|--force"). What needs more than words and flags to be judged stands in `rules`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from console.fleet.decisions.risk.calls import Call, matches
from console.fleet.decisions.risk.model import Risk, risk
from console.fleet.decisions.risk.shell import Word


class Row(NamedTuple):
    rule: str
    programs: str
    words: str
    flags: str
    reason: str


_ROWS: Final = (
    # --- files and disks
    Row("delete-tree", "shred|srm|wipe", "", "", "destroys what is in files for good"),
    Row("delete-tree", "rsync", "", "--delete|--delete-after|--delete-before|--delete-excluded|--del",
        "deletes at the target whatever the source does not have"),
    Row("delete-many", "find|fd", "", "-delete", "deletes every file that it finds"),
    Row("overwrite-disk", "mkfs|mkfs.*|mke2fs|wipefs|fdisk|sfdisk|sgdisk|parted|newfs|blkdiscard", "", "",
        "overwrites a disk or its table of partitions"),
    Row("overwrite-disk", "diskutil", "erase*|partition*|eraseDisk", "", "erases a disk"),
    Row("change-modes", "chown|chgrp", "", "-R|--recursive", "changes the owner of a whole folder"),
    # --- git
    Row("git-loses-work", "git", "reset", "--hard", "throws away uncommitted changes"),
    Row("git-loses-work", "git", "clean", "-f|--force", "deletes files that git does not know"),
    Row("git-loses-work", "git", "checkout|switch", "-f|--force|--discard-changes", "throws away uncommitted changes"),
    Row("git-loses-work", "git", "checkout .", "", "throws away uncommitted changes"),
    Row("git-loses-work", "git", "stash drop|clear", "", "throws away stashed changes"),
    Row("git-loses-work", "git", "branch", "-D", "deletes a branch that may not be merged"),
    Row("git-loses-work", "git", "reflog expire|delete", "", "forgets where lost commits are"),
    Row("git-loses-work", "git", "update-ref", "-d", "deletes a reference"),
    Row("git-loses-work", "git", "worktree remove", "-f|--force", "deletes a work tree with its changes"),
    Row("git-loses-work", "git", "gc", "--prune=now", "deletes commits that nothing refers to"),
    Row("git-loses-work", "git", "filter-branch|filter-repo", "", "rewrites the whole history"),
    Row("git-rewrites-remote", "git", "push", "-f|--force|--force-with-lease|--mirror|--delete|-d|--prune",
        "rewrites or deletes what others have"),
    Row("git-rewrites-remote", "gh", "repo|release|secret|variable delete", "", "deletes it at the server"),
    # --- containers and clusters
    Row("containers-delete", "docker|podman", "system|volume|image|container|network|builder prune", "",
        "deletes whatever is not in use"),
    Row("containers-delete", "docker|podman", "volume rm|remove", "", "deletes volumes with their data"),
    Row("containers-delete", "docker|podman", "rm|rmi", "-f|--force", "removes containers or images that are in use"),
    Row("containers-delete", "docker|podman", "compose down", "-v|--volumes", "deletes volumes with their data"),
    Row("containers-delete", "docker-compose", "down", "-v|--volumes", "deletes volumes with their data"),
    Row("cloud-delete", "kubectl|oc", "delete|drain|replace", "", "takes away or replaces what a cluster runs"),
    Row("cloud-delete", "helm", "uninstall|delete|rollback", "", "takes a release away"),
    Row("cloud-delete", "terraform|tofu|terragrunt|pulumi|cdk", "destroy", "", "destroys what it manages"),
    Row("cloud-delete", "terraform|tofu|terragrunt", "apply", "-auto-approve|--auto-approve",
        "changes what it manages, without showing what"),
    Row("cloud-delete", "terraform|tofu", "state rm", "", "forgets what it manages"),
    Row("cloud-delete", "aws", "s3 rm", "--recursive", "deletes every object below"),
    Row("cloud-delete", "aws", "s3 rb", "", "deletes a bucket"),
    Row("cloud-delete", "aws", "s3 sync", "--delete", "deletes at the target whatever the source does not have"),
    Row("cloud-delete", "aws", "* delete-*|terminate-*|deregister-*|purge-*|revoke-*|detach-*", "",
        "deletes or ends it in the cloud"),
    Row("cloud-delete", "gcloud", "* * delete", "", "deletes it in the cloud"),
    Row("cloud-delete", "gcloud", "* delete", "", "deletes it in the cloud"),
    Row("cloud-delete", "gsutil", "rm|rb", "", "deletes it in the cloud"),
    Row("cloud-delete", "az", "* delete|purge", "", "deletes it in the cloud"),
    Row("cloud-delete", "az", "* * delete|purge", "", "deletes it in the cloud"),
    Row("cloud-delete", "doctl", "* * delete|rm", "", "deletes it in the cloud"),
    Row("cloud-delete", "heroku", "apps:destroy|pg:reset|addons:destroy", "", "destroys it in the cloud"),
    Row("cloud-delete", "fly|flyctl", "apps destroy", "", "destroys it in the cloud"),
    # --- data bases and packages
    Row("database-delete", "dropdb|dropuser", "", "", "drops a data base"),
    Row("database-delete", "redis-cli", "flushall|flushdb|FLUSHALL|FLUSHDB", "", "deletes every key"),
    Row("database-delete", "rails|rake|bundle", "db:drop*|db:reset|db:purge", "", "drops the data base"),
    Row("database-delete", "bundle", "exec * db:drop*|db:reset|db:purge", "", "drops the data base"),
    Row("database-delete", "prisma", "migrate reset", "", "drops the data base"),
    Row("database-delete", "npx|pnpm|yarn", "prisma migrate reset", "", "drops the data base"),
    Row("database-delete", "python", "*manage.py flush|reset_db", "", "empties the data base"),
    Row("package-withdraw", "npm|yarn|pnpm", "unpublish|deprecate", "", "withdraws a published package"),
    Row("package-withdraw", "cargo", "yank", "", "withdraws a published package"),
    Row("package-withdraw", "gem", "yank", "", "withdraws a published package"),
    # --- the machine
    Row("kills-processes", "pkill|killall|killall5|skill", "", "", "ends every process of a name"),
    Row("stops-machine", "shutdown|reboot|halt|poweroff", "", "", "stops the machine"),
    Row("stops-machine", "systemctl", "poweroff|reboot|halt|kexec|rescue|emergency", "", "stops the machine"),
    Row("stops-machine", "init|telinit", "0|1|6", "", "stops the machine"),
    Row("stops-service", "systemctl", "stop|disable|mask|kill|restart", "", "stops a service, or starts it anew"),
    Row("stops-service", "service", "* stop|restart", "", "stops a service, or starts it anew"),
    Row("stops-service", "launchctl", "unload|remove|bootout|kill", "", "stops a service"),
    Row("delete-many", "crontab", "", "-r", "deletes every planned job"),
    Row("delete-many", "userdel|deluser|groupdel", "", "", "deletes an account"),
    Row("opens-firewall", "iptables|ip6tables", "", "-F|--flush|-P|--policy", "changes what the firewall lets in"),
    Row("opens-firewall", "ufw", "disable|reset", "", "opens the firewall"),
    Row("opens-firewall", "nft", "flush", "", "opens the firewall"),
    Row("opens-firewall", "setenforce", "0", "", "turns a protection of the system off"),
    Row("opens-firewall", "spctl|csrutil", "disable|--master-disable", "", "turns a protection of the system off"),
    # --- rights
    Row("becomes-another", "sudo|doas|pkexec|su|runuser|gosu|su-exec", "", "", "runs with the rights of another user"),
    Row("gives-rights", "setcap|visudo|chpasswd|passwd|useradd|adduser|usermod", "", "",
        "changes accounts, passwords or what a program may do"),
    Row("gives-rights", "dscl|sysadminctl", "", "", "changes accounts"),
    Row("gives-rights", "kubectl", "create clusterrolebinding|rolebinding", "", "gives rights in the cluster"),
    Row("gives-rights", "aws", "iam attach-*|put-*-policy|create-access-key|add-*", "", "gives rights in the cloud"),
    Row("container-of-host", "nsenter|chroot|unshare", "", "", "leaves the boundary that keeps it apart"),
    Row("container-of-host", "docker|podman", "run|create|exec", "--privileged|--pid=host|--net=host|--cap-add",
        "a container with rights on the machine itself"),
    Row("kernel", "insmod|modprobe|rmmod|kexec", "", "", "changes the running kernel"),
    Row("kernel", "sysctl", "", "-w|--write", "changes settings of the kernel"),
    Row("runs-later", "systemctl", "enable", "", "starts again with the machine"),
    Row("runs-later", "crontab", "-|*", "", "replaces the planned jobs"),
    Row("runs-later", "at|batch", "", "", "runs later, when nobody looks"),
    Row("runs-later", "git",
        "config core.hooksPath|core.sshCommand|core.pager|core.fsmonitor|core.editor|alias.*|filter.* *", "",
        "lets git run another program"),
    Row("skips-checks", "claude|codex|gemini|aider|opencode|amp", "",
        "--dangerously-skip-permissions|--yolo|--dangerously-bypass-approvals-and-sandbox|--yes-always|--full-auto",
        "starts an agent that asks nobody"),
    Row("skips-checks", "git", "commit|push|merge", "--no-verify", "skips the checks of the repository"),
    # --- code from elsewhere
    Row("installs-from-address", "pip|pip3|uv|pipx", "install|add|pip|run *://*|git+*", "",
        "installs what stands at an address"),
    Row("installs-from-address", "npm|pnpm|yarn|bun", "install|i|add *://*|git+*|git@*", "",
        "installs what stands at an address"),
    Row("installs-from-address", "cargo", "install", "--git", "installs what stands at an address"),
    Row("remote-shell", "nc|ncat|netcat", "", "-e|-c|--exec|--sh-exec", "gives a shell to whoever connects"),
    # --- secrets
    Row("secret-shown", "gh", "auth token", "", "shows a token"),
    Row("secret-shown", "gh", "auth status", "-t|--show-token", "shows a token"),
    Row("secret-shown", "gcloud", "auth print-*", "", "shows a token"),
    Row("secret-shown", "gcloud", "secrets versions access", "", "shows a secret"),
    Row("secret-shown", "aws", "secretsmanager get-secret-value", "", "shows a secret"),
    Row("secret-shown", "aws", "configure get|export-credentials", "", "shows a secret"),
    Row("secret-shown", "aws", "ssm get-parameter*", "--with-decryption", "shows a secret"),
    Row("secret-shown", "az", "account get-access-token", "", "shows a token"),
    Row("secret-shown", "vault", "read|kv|print", "", "shows a secret"),
    Row("secret-shown", "kubectl", "get|describe secret|secrets|secret/*", "", "shows a secret"),
    Row("secret-shown", "op", "read|item", "", "shows a secret"),
    Row("secret-shown", "pass", "show|*", "", "shows a secret"),
    Row("secret-shown", "security", "find-*-password|dump-keychain|export", "", "shows a secret"),
    Row("secret-shown", "heroku", "config", "", "shows the secrets of an application"),
    Row("secret-shown", "gpg", "", "--export-secret-keys|--export-secret-subkeys", "gives out a private key"),
)  # fmt: skip

_VALUED: Final[Mapping[str, tuple[str, ...]]] = {
    "git": ("-C", "-c", "--git-dir", "--work-tree", "-m", "--message"),
    "kubectl": ("-n", "--namespace", "--context", "--kubeconfig", "-l", "-o", "-f", "--filename"),
    "helm": ("-n", "--namespace", "--kube-context"),
    "aws": ("--profile", "--region", "--output", "--endpoint-url"),
    "gcloud": ("--project", "--zone", "--region", "--account"),
    "docker": ("-H", "--host", "--context", "-f", "--file", "-p"),
    "podman": ("-f", "--file", "-p"),
    "docker-compose": ("-f", "--file", "-p"),
    "terraform": ("-chdir",),
    "redis-cli": ("-h", "-p", "-a", "-n", "-u"),
    "crontab": ("-u",),
    "at": ("-f", "-q", "-t"),
}
"""Options that take the word behind them along, so that it is not taken for an operand."""


def _by_program() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in _ROWS:
        for program in row.programs.split("|"):
            found[program].append(row)
    return dict(found)


_ROWS_OF: Final = _by_program()
_DOTTED: Final = tuple(program for program in _ROWS_OF if "*" in program)


def table_risks(call: Call) -> Iterator[Risk]:
    """What the table says about a call."""
    rows = _ROWS_OF.get(call.program, ())
    if not rows and "." in call.program:
        rows = [row for name in _DOTTED if matches(call.program, name) for row in _ROWS_OF[name]]
    for row in rows:
        found = _found(call, row)
        if found is not None:
            yield risk(row.rule, row.reason, call.span(*found))


def _found(call: Call, row: Row) -> list[Word] | None:
    """The words that make the row true; None where it is not."""
    found: list[Word] = []
    if row.flags:
        flag = call.has(*row.flags.split("|"))
        if flag is None:
            return None
        found.append(flag)
    if row.words:
        wanted = row.words.split(" ")
        operands = call.operands(*_VALUED.get(call.program, ()))[: len(wanted)]
        if len(operands) < len(wanted):
            return None
        if not all(matches(word.value, pattern) for word, pattern in zip(operands, wanted, strict=True)):
            return None
        found += operands
    return found
