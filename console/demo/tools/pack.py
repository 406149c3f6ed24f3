"""Pack the pages of the site: content/*.md become build/site.tar. The same pages give the same bytes."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path


def main() -> None:
    """Pack what lies below the current folder."""
    pages = sorted(Path("content").glob("*.md"))
    target = Path("build/site.tar")
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w") as archive:
        for page in pages:
            data = page.read_bytes()
            entry = tarfile.TarInfo(page.name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    print(f"packed {len(pages)} pages into {target}, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
