"""Where files that a person wrote enter the harness: strict models, and everything that is wrong with a file at once.

Refuses to know what the files are about.
"""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from proxy.plainfile import open_plain
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, describe, field_name
from proxy.spans import JSON
from proxy.visible import visible
from proxy.yamlfile import Document, YamlError, load_document


class Entry(BaseModel):
    """A map of ours in a file: unknown fields are errors, and no value is turned into another type."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_by_name=True, validate_by_alias=True
    )


Model = TypeVar("Model", bound=BaseModel)


class Intake:
    """One file being read. Problems are collected, so that a person sees all of them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def wrong(self, path: FieldPath, message: str) -> None:
        """Note that the value at `path` cannot be used, and what to do."""
        self.problems.append(Problem(self.document.name, self.document.line(path), field_name(path), message))

    def note(self, path: FieldPath, message: str) -> None:
        """Note what looks like a slip, and is none for sure."""
        self.notes.append(Problem(self.document.name, self.document.line(path), field_name(path), f"note: {message}"))

    def read(self, model: type[Model], data: JSON, path: FieldPath) -> Model | None:
        """`data` as a model, None (and the problems noted) where it is none. `path` leads to it in the file."""
        if not isinstance(data, dict):
            self.wrong(path, f"expected a map with {fields_of(model)}, not {describe(data)}")
            return None
        try:
            return model.model_validate(data)
        except ValidationError as error:
            for item in error.errors():
                self.wrong((*path, *item["loc"]), sentence(item, fields_of(model) if len(item["loc"]) == 1 else ""))
            return None


def open_document(path: Path, problems: list[Problem]) -> Document | None:
    """The YAML document of a file, None (and the problem noted) where there is none."""
    try:
        with open_plain(path, follow=True) as file:
            return load_document(file.read(), str(path))
    except OSError as error:
        problems.append(Problem(str(path), None, "", f"the file cannot be read: {error.strerror}"))
    except YamlError as error:
        problems.extend(error.problems)
    except ValueError as error:
        # U+0000 in the name.
        problems.append(Problem(visible(str(path)), None, "", f"the file cannot be read: {error}"))
    return None


def fields_of(model: type[BaseModel]) -> str:
    """The fields that a map may have, as a person reads them."""
    return ", ".join(field.alias or name for name, field in model.model_fields.items())


def sentence(item: ErrorDetails, fields: str) -> str:
    """One error of pydantic's as a sentence that says what to do; `fields` are those that the map may have."""
    value: JSON = item["input"]
    match item["type"]:
        case "extra_forbidden":
            return "unknown field" + (f"; here may stand {fields}" if fields else "")
        case "missing":
            return "this field is missing"
        case "string_type":
            quotes = "" if isinstance(value, list | dict) else "; put it in quotes"
            return f"expected text, not {describe(value)}{quotes}"
        case "bool_type":
            return f"expected true or false, not {describe(value)}"
        case "int_type":
            return f"expected a whole number, not {describe(value)}"
        case "float_type":
            return f"expected a number, not {describe(value)}"
        case "list_type":
            return f"expected a list, not {describe(value)}"
        case "dict_type" | "model_type":
            return f"expected a map, not {describe(value)}"
        case "literal_error":
            return f"expected {item['ctx']['expected']}, not {describe(value)}"
        case "string_too_short" | "too_short":
            return "this may not be empty"
        case "greater_than" | "greater_than_equal":
            least = item["ctx"].get("ge", item["ctx"].get("gt"))
            how = "at least" if item["type"] == "greater_than_equal" else "more than"
            return f"expected {how} {least:g}, not {describe(value)}"
        case "less_than" | "less_than_equal":
            most = item["ctx"].get("le", item["ctx"].get("lt"))
            how = "at most" if item["type"] == "less_than_equal" else "less than"
            return f"expected {how} {most:,}, not {describe(value)}"
        case "finite_number":
            return f"expected a finite number, not {value!r}"
        case _:
            return item["msg"].removeprefix("Value error, ")
