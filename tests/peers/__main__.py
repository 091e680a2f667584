"""`make peers`: put the peers where `places` says, those that are not there yet. Refuses to know what uses them.

With the argument `clients`, those for `make test-clients` instead, which are large; with `frameworks` those for
`make test-targets`.
"""

import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.peers.places import (
    CLIENT_NPMS,
    CLIENT_VENVS,
    FRAMEWORK_VENVS,
    JUNIT,
    NPM,
    VENVS,
    is_made,
    junit_schema,
    pins_of,
    place,
    ready_mark,
)

CHOICES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "clients": (CLIENT_VENVS, CLIENT_NPMS),
    "frameworks": (FRAMEWORK_VENVS, ()),
}
"""Peers by the argument that asks for them: venvs, and folders of npm."""


def make_venv(name: str) -> None:
    """Make the venv of a peer; CalledProcessError where its packages cannot be had."""
    folder = place(name)
    venv.create(folder, with_pip=False)
    install = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet")
    subprocess.run([*install, "--disable-pip-version-check", "--requirement", str(pins_of(name))], check=True)


def make_npm(name: str) -> None:
    """Install the npm packages of a peer; CalledProcessError where they cannot be had."""
    folder = place(name)
    folder.mkdir(parents=True)
    shutil.copy(pins_of(name), folder / "package.json")
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    subprocess.run(["npm", "install", *options], cwd=folder, check=True)


def make_schema(name: str) -> None:
    """One file out of a source package; CalledProcessError where that cannot be had, KeyError where it has none."""
    place(name).mkdir(parents=True)
    wanted = junit_schema()
    download = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    with TemporaryDirectory() as folder:
        only = ("--no-binary", ":all:", "--dest", folder, "--requirement", str(pins_of(name)))
        subprocess.run([*download, *only], check=True)
        (found,) = Path(folder).iterdir()
        with tarfile.open(found) as package:
            member = next((one for one in package if Path(one.name).name == wanted.name), None)
            content = package.extractfile(member) if member is not None else None
            if content is None:
                raise KeyError(f"{found.name} has no {wanted.name}")
            wanted.write_bytes(content.read())


def main(arguments: list[str]) -> int:
    """Make what is missing; 1 where one cannot be made."""
    failed = False
    venvs, npms = CHOICES.get(" ".join(arguments), ((*VENVS, JUNIT), (NPM,)))
    for name in (*venvs, *npms):
        if is_made(name):
            continue
        if name in npms and not (shutil.which("npm") and shutil.which("node")):
            sys.stderr.write(f"peers: npm is not on this machine, so {name!r} is left out\n")
            continue
        sys.stderr.write(f"peers: making {place(name)}\n")
        shutil.rmtree(place(name), ignore_errors=True)
        try:
            if name == JUNIT:
                make_schema(name)
            else:
                make_npm(name) if name in npms else make_venv(name)
        except (OSError, KeyError, tarfile.TarError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"peers: {name} cannot be made: {error}\n")
            failed = True
            continue
        ready_mark(name).touch()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
