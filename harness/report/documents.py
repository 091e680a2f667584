"""A run as the one document that a command prints, in the format that was asked for.

Refuses to know where it is printed.
"""

import json
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

from harness.checked import Checked
from harness.report.junit import as_junit
from harness.report.markdown import as_markdown
from harness.report.owasp import as_owasp_result, as_owasp_suite
from harness.report.sarif import as_sarif
from harness.report.table import Said, Style, as_table
from harness.results import RunResult
from harness.runfolder import as_text

Format: TypeAlias = Literal["text", "json", "junit", "markdown", "owasp", "sarif"]
FORMATS: tuple[Format, ...] = get_args(Format)


def as_document(
    form: Format,
    run: RunResult,
    checked: Callable[[], Sequence[Checked]],
    *,
    suite: bool,
    style: Style,
    said: Said | None = None,
) -> str:
    """The document, ending in a newline.

    `checked` are the trials with their traces, which only `owasp` needs; with `suite` it shows a single one as a suite
    too. `style` and `said` are those of `text`.
    """
    match form:
        case "text":
            return as_table(run, style, said)
        case "json":
            return as_text(run.as_json())
        case "junit":
            return as_junit(run)
        case "markdown":
            return as_markdown(run)
        case "sarif":
            return as_text(as_sarif(run))
        case "owasp":
            trials = checked()
            whole = suite or len(trials) != 1
            return json.dumps(as_owasp_suite(trials) if whole else as_owasp_result(trials[0]), indent=2) + "\n"
