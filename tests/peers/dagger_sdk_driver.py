"""Drives Dagger's official SDK: commands come in as JSON, one a line, and answers go out likewise.

Run by the interpreter of an environment that holds the SDK, so it imports nothing of this project.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from typing import Any

sdk: Any = importlib.import_module("dagger")
ANY_MODEL = "replay/W10="


def camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def shape(types: list[str]) -> dict[str, dict[str, list[str]]]:
    """Type -> field -> arguments, as the SDK has them."""
    return {
        name: {
            camel(field): sorted(camel(argument) for argument in list(inspect.signature(method).parameters)[1:])
            for field, method in vars(getattr(sdk, name)).items()
            if not field.startswith("_") and callable(method) and field != "with_"
        }
        for name in types
    }


def words(enums: list[str]) -> dict[str, list[str]]:
    return {name: sorted(member.value for member in getattr(sdk, name)) for name in enums}


def agent(handle: str) -> Any:
    return sdk.dag.llm(model=ANY_MODEL).agent(handle, "driven")


async def carry_out(verb: str, handle: str) -> dict[str, str]:
    it = agent(handle)
    match verb:
        case "send":
            message = await it.send("more")
            return {"delivery": (await message.delivery()).value}
        case "pause":
            await it.pause()
        case "pause.interrupt":
            await it.pause(interrupt=True)
        case "resume":
            await it.resume()
        case "stop":
            await it.stop()
        case "stop.kill":
            await it.stop(kill=True)
        case "reseed":
            await it.reseed(it.snapshot().without_message_history())
        case "wait":
            await it.wait()
        case _:
            raise ValueError(verb)
    return {}


async def answer(asked: dict[str, Any]) -> dict[str, Any]:
    match asked["do"]:
        case "shape":
            return {"types": shape(asked["types"]), "enums": words(asked["enums"])}
        case "state":
            return {"state": (await agent(asked["handle"]).state()).value}
        case "spawn":
            return {"handle": await (await sdk.dag.llm(model=asked["model"]).spawn(name=asked["name"])).handle()}
        case "response":
            return {"response": await agent(asked["handle"]).message(asked["ref"]).response()}
        case "transcript":
            return {"transcript": await agent(asked["handle"]).snapshot().transcript()}
        case _:
            return await carry_out(asked["verb"], asked["handle"])


async def one(line: str) -> None:
    asked = json.loads(line)
    try:
        told = await answer(asked)
    except sdk.QueryError as error:
        told = {"error": str(error)}
    print(json.dumps({"id": asked["id"], **told}), flush=True)


async def main() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with sdk.connection():
        print(json.dumps({"id": 0}), flush=True)
        running = set()
        while line := await reader.readline():
            running.add(task := asyncio.create_task(one(line.decode())))
            task.add_done_callback(running.discard)
        for task in running:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
