"""The JSON Schema of watchfloor.v1, made from the models."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from watchfloor.protocol.frames import ClientFrame, HostFrame
from watchfloor.words import PROTOCOL


def schema() -> dict[str, Any]:
    """One document: `$defs` of every value, `host` and `client` the frames that each side sends.

    It describes what a strict writer sends; a reader must also accept unknown fields, frame types, event
    kinds and capabilities.
    """
    adapters = [("client", TypeAdapter[Any](ClientFrame)), ("host", TypeAdapter[Any](HostFrame))]
    schemas, definitions = TypeAdapter.json_schemas([(name, "validation", adapter) for name, adapter in adapters])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PROTOCOL,
        "description": "Frames of watchfloor.v1: `client` and `host` hold what each side sends.",
        **{name: schemas[(name, "validation")] for name, _ in adapters},
        "$defs": definitions["$defs"],
    }
