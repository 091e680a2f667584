import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.canonical import canonical, digest, spelled_out
from proxy.spans import JSON


# Appendix B of RFC 8785: the double by its bits, and how it is written.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
        (4.5, "4.5"),
        (1e-7, "1e-7"),
        (2e-3, "0.002"),
    ],
)
def test_doubles_are_written_as_the_rfc_writes_them(value: float, text: str) -> None:
    assert canonical(value) == text


def test_key_order_blanks_escapes_and_number_spelling_do_not_count() -> None:
    one = json.loads('{"b": 1.0, "a": ["\\u0041", {"y":1,"x":2}]}')
    two = json.loads('{"a":["A",{"x":2,"y":1}],"b":1}')
    assert canonical(one) == canonical(two) == '{"a":["A",{"x":2,"y":1}],"b":1}'
    assert digest(one) == digest(two)


def test_keys_are_ordered_by_utf16_units() -> None:
    value: JSON = {"\U0001f600": 1, "\ufb33": 2, "\r": 3, "1": 4, "": 5}
    assert list(json.loads(canonical(value))) == ["", "\r", "1", "\U0001f600", "\ufb33"]


def test_integers_past_a_double_stay_two_values() -> None:
    assert digest(2**53) != digest(2**53 + 1)


def test_half_a_surrogate_pair_has_a_digest() -> None:
    assert digest("\ud800") != digest("\ud801")


@settings(max_examples=150)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_as_itself(value: float) -> None:
    assert math.isclose(float(canonical(value)), value, rel_tol=0, abs_tol=0)


letters = st.text(st.sampled_from('aB1.e"\\\n\x7f\u2028\u00e9\ud7ff\ud800\udfff\ufb33\U0001f600'), max_size=6)


@settings(max_examples=150)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([1e16, 5e-324, -0.0]), letters),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(letters, inner, max_size=4)),
        max_leaves=8,
    )
)
def test_what_the_standard_library_writes_is_what_the_rules_one_by_one_give(value: JSON) -> None:
    assert canonical(value) == spelled_out(value)
