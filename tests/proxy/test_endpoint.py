import pytest

from proxy.endpoint import EndpointError, parse_endpoint


@pytest.mark.parametrize(
    ("text", "url", "http", "secure"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces", True, False),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces", True, False),
        ("https://x.example/otlp/v1/traces", "https://x.example/otlp/v1/traces", True, True),
        ("https://u:p@x.example?a=b", "https://u:p@x.example/v1/traces?a=b", True, True),
        ("grpc://localhost:4317", "localhost:4317", False, False),
        ("grpc://localhost", "localhost:4317", False, False),
        ("grpcs://[::1]:9/", "[::1]:9", False, True),
    ],
)
def test_a_url_says_where_spans_go_and_how(text: str, url: str, http: bool, secure: bool) -> None:
    assert parse_endpoint(text)[:3] == (url, http, secure)


def test_a_password_in_a_url_is_never_shown() -> None:
    assert parse_endpoint("https://user:secret@x.example").shown == "https://x.example"
    with pytest.raises(EndpointError) as raised:
        parse_endpoint("ftp://user:secret@x.example")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["", "localhost:4318", "ftp://x", "http://", "grpc://", "grpc://h/path", "grpc://h:x", "http://h:99999",
     "http://[::1", "grpc://u@h"],
)  # fmt: skip
def test_a_url_that_spans_cannot_be_sent_to_is_an_error(text: str) -> None:
    with pytest.raises(EndpointError, match="--otlp"):
        parse_endpoint(text)
