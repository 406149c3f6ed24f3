"""Shell scripts for the demo's migrations: short, long, and long in one line. They touch the folder db only."""

from __future__ import annotations

from dataclasses import dataclass

from console.demo.project import ORDERS
from console.demo.texts import CITIES


@dataclass(frozen=True, slots=True)
class Job:
    """A script, what it is for, and what to look at afterwards."""

    script: str
    why: str
    look: str


def job(number: int) -> Job:
    """The jobs come in turn, for ever; the first one is number 0."""
    makers = (_tables, _tidy, _report, _ranking, _archive)
    return makers[number % len(makers)](number // len(makers) + 1)


def _tables(round_: int) -> Job:
    lines = [
        "set -eu",
        f"# Tables of the orders by city, round {round_}.",
        "mkdir -p db/tmp db/tables",
        f"tail -n +2 {ORDERS} > db/tmp/all.csv",
        'echo "$(wc -l < db/tmp/all.csv) orders"',
    ]
    for city in CITIES:
        name = city.lower()
        lines += [
            "",
            f"# {city}",
            f"grep ',{city}$' db/tmp/all.csv > db/tmp/{name}.csv",
            f"cut -d, -f1-4 db/tmp/{name}.csv | tr , '\\t' | sort -n > db/tables/{name}.tsv",
            f'echo "{name} $(wc -l < db/tables/{name}.tsv)"',
        ]
    lines += ["", f"echo {round_} > db/version", "ls db/tables"]
    return Job("\n".join(lines), "the tables of the eight cities are made from the orders", "wc -l db/tables/*")


def _tidy(round_: int) -> Job:
    return Job("rm -rf db/tmp", "what the migration left behind is not needed", "ls db")


def _report(round_: int) -> Job:
    script = f"""set -eu
mkdir -p db/reports
{{
  echo "Orders by city, round {round_}"
  tail -n +2 {ORDERS} | cut -d, -f5 | sort | uniq -c | sort -rn
}} > db/reports/cities-{round_}.txt
cat db/reports/cities-{round_}.txt"""
    return Job(script, "a report of how many orders each city has", "ls -l db/reports")


def _ranking(round_: int) -> Job:
    script = (
        f"mkdir -p db/reports && tail -n +2 {ORDERS} | awk -F, "
        "'{ sum[$2] += $3 * $4; boxes[$2] += $3 } END { for (goods in sum) "
        'printf "%12.2f  %6d boxes  %s\\n", sum[goods] / 100, boxes[goods], goods }\' '
        f"| sort -rn > db/reports/goods-{round_}.txt && head -n 3 db/reports/goods-{round_}.txt"
    )
    return Job(script, "a ranking of the goods by what they bring in", "ls -l db/reports")


def _archive(round_: int) -> Job:
    script = (
        f"mkdir -p db/archive && cp -R db/reports db/archive/round-{round_} && rm -rf db/reports && ls -R db/archive"
    )
    return Job(script, "the reports of this round go into the archive", "ls db")
