from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.glob import check_glob, compile_glob, glob_server
from proxy.policy import canonical_name

SIGNS = "ab/.\n*?[\\"


def fits(glob: str, name: str) -> bool:
    """The definition, written down: a star is any run, a question mark one character."""

    @cache
    def rest(i: int, j: int) -> bool:
        if i == len(glob):
            return j == len(name)
        if glob[i] == "*":
            return rest(i + 1, j) or (j < len(name) and rest(i, j + 1))
        return j < len(name) and glob[i] in ("?", name[j]) and rest(i + 1, j + 1)

    return rest(0, 0)


@given(st.text(SIGNS, max_size=8), st.text(SIGNS, max_size=12))
@example("*a*", "ba\nb")
@example("a*a", "a")
@example("*ab*ab", "abab")
@example("*?a*", "aa")
@example("**", "")
def test_a_glob_fits_exactly_the_names_of_its_definition(glob: str, name: str) -> None:
    assert (compile_glob(glob).fullmatch(name) is not None) == fits(glob, name)


@given(st.text(SIGNS, max_size=8), st.data())
def test_a_glob_fits_every_name_that_is_made_of_it(glob: str, data: st.DataObject) -> None:
    filled = {"*": st.text(SIGNS, max_size=4), "?": st.text(SIGNS, min_size=1, max_size=1)}
    name = "".join(data.draw(filled.get(sign, st.just(sign))) for sign in glob)
    assert compile_glob(glob).fullmatch(name)


def test_many_stars_cost_no_exponential_time() -> None:
    assert not compile_glob("mcp/" + "*a" * 40 + "b").fullmatch("mcp/" + "a" * 20_000)
    assert not compile_glob("mcp/" + "*a?" * 40 + "*b").fullmatch("mcp/" + "a" * 20_000)


@pytest.mark.parametrize(
    "glob",
    [
        "mcp/x/evil",
        "mcp/x/*",
        "mcp/*/*",
        "mcp/*/delete_*",
        "mcp/x/resource:file:///etc/*",
        "mcp/x/prompt:a/b",
        "mcp/x/a%2Fb",
        "mcp/x/*:b",
        "mcp/x/[a]",
        "mcp/x/ evil ",
        "mcp/a.b-c_1/?",
        "mcp/*/a/b",
        "mcp/x/a%*",
        "mcp/x/a%2*",
    ],
)
def test_a_glob_that_can_fit_a_name_is_well_formed(glob: str) -> None:
    assert check_glob(glob) is None


@pytest.mark.parametrize(
    "glob",
    [
        "",
        "*",
        "evil",
        "mcp",
        "mcp/",
        "mcp/x",
        "mcp/x/",
        "mcp//evil",
        "mcp/*",
        "MCP/x/evil",
        " mcp/x/evil",
        "/mcp/x/evil",
        "mcp/a b/evil",
        "mcp/[x]/evil",
        "mcp/x/a/b",
        "mcp/x/a:b",
        "mcp/x/100%",
        "mcp/x/a%2fb",
        "mcp/x/a%zz*",
    ],
)
def test_a_glob_that_fits_no_name_is_malformed(glob: str) -> None:
    assert check_glob(glob) is not None


def test_a_malformed_glob_says_how_the_name_is_written() -> None:
    assert "write mcp/x/a%2Fb" in str(check_glob("mcp/x/a/b"))


@given(st.text(min_size=1, max_size=12))
def test_a_tool_never_has_the_name_of_a_resource_or_a_prompt(name: str) -> None:
    canonical = canonical_name("x", "tool", name)
    assert canonical.count("/") == 2
    assert not canonical.startswith(("mcp/x/resource:", "mcp/x/prompt:"))


@given(st.text("a%/:25F3A", min_size=1, max_size=6), st.text("a%/:25F3A", min_size=1, max_size=6))
def test_two_tools_never_have_one_name(one: str, other: str) -> None:
    assert (canonical_name("x", "tool", one) == canonical_name("x", "tool", other)) == (one == other)


@given(st.text("ab%/:.-_", min_size=1, max_size=8))
def test_the_canonical_name_of_a_tool_is_a_well_formed_glob_for_it(name: str) -> None:
    canonical = canonical_name("x", "tool", name)
    assert check_glob(canonical) is None
    assert compile_glob(canonical).fullmatch(canonical)


def test_resources_and_prompts_keep_their_names() -> None:
    assert canonical_name("x", "resource", "file:///a%20b") == "mcp/x/resource:file:///a%20b"
    assert canonical_name("x", "prompt", "a/b") == "mcp/x/prompt:a/b"


def test_the_server_of_a_glob_is_known_without_a_wildcard() -> None:
    assert glob_server("mcp/crm/*") == "crm"
    assert glob_server("mcp/cr?/*") is None
    assert glob_server("mcp/*/get") is None
