"""The command line at a Dagger session."""

from __future__ import annotations

from pathlib import Path

from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer
from tests.sockets.cli_kit import Done, Program


async def test_agents_are_listed_and_told_what_to_do(tmp_path: Path) -> None:
    async with DaggerServer() as server:
        worker = await in_state(server.engine, "IDLE", "worker")
        done = await in_state(server.engine, "STOPPED", "done")
        program = Program(tmp_path, DAGGER_TOKEN=server.token)
        token = ("--token-env", "DAGGER_TOKEN")

        listed = await program("sessions", server.url, *token, "--json")
        agents = {record["name"]: record for record in listed.records}
        assert agents["worker"]["capabilities"] == ["send", "pause", "resume", "stop", "reseed", "fork", "notify"]
        assert (agents["done"]["lifecycle"], agents["done"]["blocked"]["pause"]) == ("stopped", "it is stopped")

        sent = await program("send", server.url, worker.handle, "hello", *token, "--json")
        assert (sent.code, sent.record["info"]["ref"]) == (0, "#1")
        refused = await program("pause", server.url, done.handle, *token)
        assert (refused.code, "it is stopped" in refused.err) == (6, True)
        assert (await program("stop", server.url, "nobody", *token)).code == 4

        server.faults.lose.append("pause")
        lost = await program("pause", server.url, worker.handle, *token, "--json")
        assert (lost.code, lost.record["outcome"]) == (9, "unknown")
        assert [verb for verb, _ in server.engine.verbs if verb == "pause"] == ["pause"]


async def test_the_session_around_the_program_needs_no_address(tmp_path: Path) -> None:
    async with DaggerServer() as server:
        worker = await in_state(server.engine, "PAUSED", "worker")
        child = {"DAGGER_SESSION_PORT": str(server.port), "DAGGER_SESSION_TOKEN": server.token}
        program = Program(tmp_path, **child)
        done = await program("resume", "dagger+session://here", worker.handle, "--json")
        assert (done.code, done.record["info"]) == (0, {"state": "running"})
        outside = await Program(tmp_path)("sessions", "dagger+session://here")
        assert (outside.code, "dagger run" in outside.err) == (2, True)
        assert (await Program(tmp_path)("sessions", server.url)).code == 7


async def test_what_changes_an_agent_goes_by_the_command_line(tmp_path: Path) -> None:
    async with DaggerServer() as server:
        writer = await in_state(server.engine, "IDLE", "writer")
        chief = await in_state(server.engine, "IDLE", "chief")
        program = Program(tmp_path, WATCHFLOOR_TOKEN=server.token)

        async def on(verb: str, *words: str) -> Done:
            return await program(verb, server.url, writer.handle, *words, "--json")

        back = await on("reseed", "--mode", "rewind", "--to", "-2")
        assert (back.code, back.record["effect"], writer.conversation.turns) == (0, "seen", ())
        assert (await on("reseed", "--mode", "model", "--to", "echo")).code == 0
        assert (await on("send", "hello")).code == 0
        await writer.until(lambda it: it.conversation.last_reply == "echo: hello")
        assert (await on("send", "and this answers it", "--reply-to", "#1")).code == 0
        assert [mail.reply_to for mail in writer.mail] == ["", "#1"]
        await writer.until(lambda it: it.conversation.last_reply == "echo: and this answers it")
        assert (await on("reseed", "--mode", "compact")).code == 0
        assert writer.conversation.last_reply.startswith("echo: Summarise")
        forked = await on("fork", "--name", "branch")
        assert (forked.code, server.engine.agents[forked.record["info"]["session"]].name) == (0, "branch")
        assert (await on("notify", chief.handle, "--on", "idle")).code == 0
        assert [states for _, states in writer.subscribers.values()] == [["IDLE"]]
        assert (await on("notify", chief.handle, "--on", "completed")).code == 6
        await on("pause")
        begun = tmp_path / "begin"
        begun.write_text("begin anew")
        assert (await on("reseed", "--mode", "replace", "--file", str(begun))).code == 0
        assert [turn.text for turn in writer.conversation.turns] == ["begin anew"]
