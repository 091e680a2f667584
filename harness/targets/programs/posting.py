"""Asks a target over HTTP once: posts the task, takes in the answer, whole or as it streams, and writes down both.

Refuses to know what an answer is worth. Started as `posting.py TASK REPORT`; what the target answered last goes to
standard output. A redirection is not followed, a proxy of the environment is not used, and an answer has a largest
size. Nothing here is retried: a second attempt would be a second trial.
"""

import codecs
import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any  # values of JSON, which no package of ours is there to name
from urllib.parse import urlsplit

CHUNK = 1 << 16
_LISTS = ("messages", "tool_calls", "events")


class ReachError(ValueError):
    """The target could not be reached, so nothing is known of it."""


class AnswerError(ValueError):
    """The target answered, and not as its contract says."""


def main(task_file: str, report_file: str) -> int:
    """Ask, write the report, and give the exit code: 1 where there is no answer."""
    with open(task_file, encoding="utf-8") as file:
        task = json.load(file)
    began = time.monotonic()
    report: dict[str, Any] = {"failure": None, "first_ms": None, "whole_ms": None}

    def keep() -> None:
        with open(os.open(report_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            json.dump(report, out)

    try:
        _ask(task, report, began, keep)
    except ReachError as error:
        report["failure"] = {"status": "infra_error", "reason": str(error)}
    except AnswerError as error:
        report["failure"] = {"status": "agent_crash", "reason": str(error)}
    keep()
    if report["failure"] is not None:
        sys.stderr.write(f"{report['failure']['reason']}\n")
    return 0 if report["failure"] is None else 1


def _ask(task: dict[str, Any], report: dict[str, Any], began: float, keep: Callable[[], None]) -> None:
    """Take the answer in; `keep` writes the report down as it is, since nobody knows how long the rest takes."""
    asked = task["ask"]
    parts = urlsplit(asked["url"])
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    host = parts.hostname or ""
    connection = kind(host, parts.port)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream, text/plain"}
    headers |= {name.lower(): value for name, value in asked["headers"].items()}
    for name, variable in asked["header_env"].items():
        if variable not in os.environ:
            raise ReachError(f"the header {name} wants the variable {variable}, which is not set")
        headers[name.lower()] = os.environ[variable]
    place = f"{parts.scheme}://{parts.netloc}{parts.path}"
    try:
        connection.connect()
    except (OSError, UnicodeError) as error:
        raise ReachError(f"the target {place} cannot be reached: {error}") from error
    try:
        connection.request("POST", target, json.dumps(asked["body"]).encode(), headers)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise AnswerError(f"the target {place} broke off before its answer: {_named(error)}") from error
    with answer:
        if 300 <= answer.status < 400:
            raise AnswerError(f"the target answered with a redirection ({answer.status}), which is not followed")
        if answer.status != 200:
            raise AnswerError(f"the target answered with the HTTP status {answer.status}")
        try:
            if asked["contract"] == "http":
                _take_trace(answer, asked["max_bytes"], report)
            else:
                _take_text(answer, asked, report, began, keep)
        except (OSError, http.client.HTTPException) as error:
            raise AnswerError(f"the target's answer broke off: {_named(error)}") from error
        finally:
            report["whole_ms"] = _since(began)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)


def _chunks(answer: http.client.HTTPResponse, most: int) -> Iterator[bytes]:
    """The body as it comes."""
    size = 0
    while chunk := answer.read1(CHUNK):
        size += len(chunk)
        if size > most:
            raise AnswerError(f"the target's answer is longer than max_bytes = {most}")
        yield chunk
    if answer.length:
        raise AnswerError(f"the target's answer broke off, {answer.length} bytes before its end")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


def _json(text: bytes | str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the target's answer is no JSON: {type(error).__name__}") from error


def _take_trace(answer: http.client.HTTPResponse, most: int, report: dict[str, Any]) -> None:
    """The contract `http`: an object of three lists, each of objects; one that is left out is empty.

    One that names an error is none.
    """
    found = _json(b"".join(_chunks(answer, most)))
    if not isinstance(found, dict):
        raise AnswerError("the target's answer is no object with messages, tool_calls and events")
    _refuse(found)
    for name in _LISTS:
        items = found.get(name, [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise AnswerError(f"in the target's answer {name} is no list of objects")
    report["reported"] = {name: found[name] for name in _LISTS if name in found}
    if note := _note(found):
        sys.stderr.write(f"note: {note}\n")
    said = [one.get("content") for one in found.get("messages", []) if one.get("role") == "assistant"]
    if said and isinstance(said[-1], str):
        _say(said[-1])


def _note(found: dict[str, Any]) -> str:
    """What looks like a slip in an answer, and is none for sure; "" for nothing."""
    said = [] if found.get("messages") else ["the target's answer has no messages"]
    unknown = [repr(name)[:40] for name in found if name not in (*_LISTS, "error")]
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        said.append(f"it has fields that nobody reads: {', '.join(unknown[:3])}{more}")
    return "; ".join(said)


def _take_text(
    answer: http.client.HTTPResponse,
    asked: dict[str, Any],
    report: dict[str, Any],
    began: float,
    keep: Callable[[], None],
) -> None:
    """The contract `chat`: events, one JSON document, or plain text, by its media type; said as it comes."""
    kind = (answer.headers.get_content_type() or "").lower()
    chunks = _chunks(answer, asked["max_bytes"])
    path = asked["answer"]
    usage: dict[str, Any] | None = None

    def take(text: str) -> None:
        if text and report["first_ms"] is None:
            report["first_ms"] = _since(began)
            keep()
        _say(text)

    if kind == "text/event-stream":
        ended = path is not None
        for data in _events(chunks):
            if data == "[DONE]":
                ended = True
                break
            if path == "":
                take(data)
                continue
            found = _json(data)
            ended = ended or _at(found, "choices.0.finish_reason") is not None
            _refuse(found)
            take(_at(found, path or "choices.0.delta.content") or "")
            usage = found["usage"] if isinstance(found, dict) and isinstance(found.get("usage"), dict) else usage
        if not ended:
            raise AnswerError("the target's stream ended before its last event")
    elif kind == "application/json":
        found = _json(b"".join(chunks))
        _refuse(found)
        text = _at(found, path or "choices.0.message.content")
        if text is None:
            raise AnswerError(f"the target's answer has no text at {path or 'choices.0.message.content'}")
        take(text)
        usage = found["usage"] if isinstance(found, dict) and isinstance(found.get("usage"), dict) else None
    else:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for chunk in chunks:
            take(decoder.decode(chunk))
        take(decoder.decode(b"", final=True))
    if usage is not None:
        report["reported"] = {"events": [_model_call(usage)]}


def _refuse(found: Any) -> None:
    if isinstance(found, dict) and found.get("error"):
        error = found["error"]
        told = error.get("message") if isinstance(error, dict) else error
        raise AnswerError(f"the target answered with an error: {str(told)[:200]}")


def _events(chunks: Iterator[bytes]) -> Iterator[str]:
    """The data of each event of a stream (HTML standard, section 9.2.6)."""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        # A line end that may go on in the next chunk is left for it.
        whole, end, rest = rest.rpartition(b"\n")
        if end:
            yield from whole.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _at(value: Any, path: str) -> str | None:
    """The text at a path of keys and places, None where there is none."""
    for word in path.split("."):
        if isinstance(value, list) and word.isascii() and word.isdigit() and int(word) < len(value):
            value = value[int(word)]
        elif isinstance(value, dict) and word in value:
            value = value[word]
        else:
            return None
    return value if isinstance(value, str) else None


def _model_call(usage: dict[str, Any]) -> dict[str, Any]:
    """Tokens as OpenAI's chat completions count them: those from the cache are among those of the prompt."""
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    whole = _count(usage.get("prompt_tokens"))
    fresh = None if whole is None else max(whole - (cached or 0), 0)
    return {
        "type": "model_call",
        "in": fresh,
        "cached": cached,
        "out": _count(usage.get("completion_tokens")),
        "error": False,
    }


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _say(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
