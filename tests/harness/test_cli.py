import subprocess
import sys

from proxy import __version__


def test_the_module_is_the_command_where_there_is_no_console_script() -> None:
    def said(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "harness.cli", *arguments]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout

    assert said("--version") == (0, f"wiretrap {__version__}\n")
    assert said("no-such-command") == (2, "")
