"""Calls an agent that is a function of Python's, or makes one with a framework, and writes down what it reports.

Refuses to know what the agent does. Started as `calling.py FRAMEWORK MODULE:FUNCTION FOLDER TASK REPORT` by the
interpreter whose packages the agent wants; FOLDER is where its module is looked for first. What it answers goes to
standard output, what it prints to standard error.
"""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any  # values of JSON and of frameworks that are not there when this is checked

SESSION = 60
"""Seconds that a server may take for an answer where a framework would give it five."""


def main(framework: str, function: str, folder: str, task_file: str, report_file: str) -> None:
    """Call it, and write answer and report. What it raises ends the process as it ends any."""
    out = os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answer.
    os.dup2(2, 1)
    sys.path.insert(0, folder)
    with open(task_file, encoding="utf-8") as file:
        task = json.load(file)

    def write(failure: dict[str, str] | None, reported: dict[str, Any]) -> None:
        descriptor = os.open(report_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"failure": failure, "first_ms": None, "whole_ms": None, "reported": reported}, file)

    try:
        found = _function(function)
    except (ImportError, SyntaxError) as error:
        reason = f"{function} cannot be imported: {type(error).__name__}: {error}"
        write({"status": "infra_error", "reason": reason}, {})
        raise
    ways = {"python": plain, "openai-agents": openai_agents, "langchain": langchain, "pydantic-ai": pydantic_ai}
    answer, reported = asyncio.run(ways[framework](found, task))
    write(None, reported)
    with out:
        out.write(answer.encode("utf-8", "backslashreplace"))


def _function(function: str) -> Any:
    """What MODULE:FUNCTION names. Raises ImportError and SyntaxError, and whatever else its module does."""
    module, _, name = function.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ImportError(f"there is no {part!r} in {module}")
        found = getattr(found, part)
    return found


async def plain(function: Callable[[Any], Any], task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A function that gets the task, sync or async, and gives text, or an object as the contract `http` has it."""
    if inspect.iscoroutinefunction(function):
        given = await function(task)
    else:
        # In a thread, so that it may run an event loop of its own.
        given = await asyncio.to_thread(function, task)
        given = await given if inspect.isawaitable(given) else given
    if given is None or isinstance(given, str):
        return given or "", {}
    if not isinstance(given, dict):
        raise TypeError(f"the agent gave {type(given).__name__}; expected text or an object")
    unknown = given.keys() - {"answer", "messages", "tool_calls", "events"}
    if unknown:
        raise ValueError(f"the agent's object has {min(unknown)!r}; expected answer, messages, tool_calls, events")
    reported = {key: given[key] for key in ("messages", "tool_calls", "events") if key in given}
    for key, items in reported.items():
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise TypeError(f"in the agent's object {key} is no list of objects")
    return str(given.get("answer", "")), reported


async def openai_agents(build: Callable[[Any], Any], task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`build(mcp_servers)` gives an Agent of the OpenAI Agents SDK; hand-overs and tokens are those of its run."""
    agents = import_module("agents")
    mcp = import_module("agents.mcp")
    async with AsyncExitStack() as stack:
        servers = []
        for name, entry in task["mcp_servers"].items():
            made = (
                mcp.MCPServerStreamableHttp({"url": entry["url"]}, name=name, client_session_timeout_seconds=SESSION)
                if "url" in entry
                else mcp.MCPServerStdio(entry, name=name, client_session_timeout_seconds=SESSION)
            )
            servers.append(await stack.enter_async_context(made))
        run = await agents.Runner.run(await _made(build, servers), task["prompt"])
    events: list[dict[str, Any]] = []
    for item in run.new_items:
        if item.type == "handoff_output_item":
            events.append({"type": "handoff", "from": item.source_agent.name, "to": item.target_agent.name, "text": ""})
    usage = run.context_wrapper.usage
    cached = usage.input_tokens_details.cached_tokens
    acting = [run.last_agent, *(item.agent for item in run.new_items)]
    # An agent that names no model has the SDK's own, whichever that is.
    models = {agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None) for agent in acting}
    events += _tokens(usage.input_tokens, cached, usage.output_tokens, models)
    return str(run.final_output), {"events": events}


async def langchain(build: Callable[[Any], Any], task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`build(tools)` gives what answers `ainvoke({"messages": […]})`, as `create_agent` of LangChain makes it."""
    client = import_module("langchain_mcp_adapters.client")
    loading = import_module("langchain_mcp_adapters.tools")
    entries = {
        name: {"transport": "streamable_http", "url": entry["url"]}
        if "url" in entry
        else {"transport": "stdio", **entry}
        for name, entry in task["mcp_servers"].items()
    }
    servers = client.MultiServerMCPClient(entries)
    async with AsyncExitStack() as stack:
        tools = []
        for name in entries:
            session = await stack.enter_async_context(servers.session(name))
            tools += await loading.load_mcp_tools(session)
        agent = await _made(build, tools)
        state = await agent.ainvoke({"messages": [{"role": "user", "content": task["prompt"]}]})
    events: list[dict[str, Any]] = []
    for message in state["messages"]:
        usage = getattr(message, "usage_metadata", None)
        if usage:
            cached = (usage.get("input_token_details") or {}).get("cache_read")
            told = getattr(message, "response_metadata", None) or {}
            models = {told.get("model_name") or told.get("model")}
            events += _tokens(usage["input_tokens"], cached, usage["output_tokens"], models)
    last = state["messages"][-1].content
    return last if isinstance(last, str) else json.dumps(last), {"events": events}


async def pydantic_ai(build: Callable[[Any], Any], task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`build(toolsets)` gives an Agent of Pydantic AI."""
    mcp = import_module("pydantic_ai.mcp")
    transports = import_module("fastmcp.client.transports")
    toolsets = [
        mcp.MCPToolset(
            entry["url"]
            if "url" in entry
            else transports.StdioTransport(entry["command"], entry["args"], env={**os.environ, **entry["env"]}),
            tool_error_behavior="failed",
            init_timeout=SESSION,
            read_timeout=SESSION,
        )
        for entry in task["mcp_servers"].values()
    ]
    agent = await _made(build, toolsets)
    run = await agent.run(task["prompt"])
    usage = run.usage if hasattr(run.usage, "input_tokens") else run.usage()
    models = {message.model_name for message in run.all_messages() if hasattr(message, "model_name")}
    events = _tokens(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, models)
    return str(run.output), {"events": events}


async def _made(build: Callable[[Any], Any], given: Any) -> Any:
    made = build(given)
    return await made if inspect.isawaitable(made) else made


def _tokens(whole: int | None, cached: int | None, out: int | None, models: set[Any]) -> list[dict[str, Any]]:
    """The event of what a framework counted, where it counted anything; the cached are among the whole.

    `models` are those that the tokens are of; where it is one, and named, the event names it.
    """
    if not whole and not out:
        return []
    fresh = None if whole is None else max(whole - (cached or 0), 0)
    event: dict[str, Any] = {"type": "model_call", "in": fresh, "cached": cached, "out": out, "error": False}
    names = list(models)
    if len(names) == 1 and isinstance(names[0], str) and names[0]:
        event["model"] = names[0]
    return [event]


if __name__ == "__main__":
    main(*sys.argv[1:])
