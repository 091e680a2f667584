"""Every link leads somewhere, and so does the name of every make target."""

import re

from tests.docs.pages import DOCS, PAGES, ROOT, TEXTS


def test_a_make_target_that_is_named_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {target for text in TEXTS.values() for target in re.findall(r"(?:\$ |`)make ([a-z]+)", text)}
    assert {"demo", "test", "setup"} <= named <= targets


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page.name]):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]
                assert anchor in anchors, f"{page.name}: {target}"


def test_every_page_of_docs_is_linked_from_the_readme() -> None:
    for page in DOCS.glob("*.md"):
        assert f"(docs/{page.name}" in TEXTS["README.md"], page.name
