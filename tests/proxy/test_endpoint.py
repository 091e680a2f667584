import pytest

from proxy.endpoint import EndpointError, parse_endpoint


@pytest.mark.parametrize(
    ("text", "url", "http", "secure"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces", True, False),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces", True, False),
        ("https://x.example/otlp/v1/traces", "https://x.example/otlp/v1/traces", True, True),
        ("https://x.example?a=b", "https://x.example/v1/traces?a=b", True, True),
        ("grpc://localhost:4317", "localhost:4317", False, False),
        ("grpc://localhost", "localhost:4317", False, False),
        ("grpcs://[::1]:9/", "[::1]:9", False, True),
    ],
)
def test_a_url_says_where_spans_go_and_how(text: str, url: str, http: bool, secure: bool) -> None:
    assert parse_endpoint(text)[:3] == (url, http, secure)


@pytest.mark.parametrize("scheme", ["http", "https", "grpc", "ftp"])
@pytest.mark.parametrize("rest", ["user:word-9f31@x.example", "user:word-9f31/a@x.example", "u:word-9f31@[1"])
def test_a_password_in_a_url_is_refused_and_never_shown(scheme: str, rest: str) -> None:
    with pytest.raises(EndpointError) as raised:
        parse_endpoint(f"{scheme}://{rest}")
    assert "word-9f31" not in str(raised.value)


def test_a_token_in_the_query_is_shown_neither_by_us_nor_in_what_a_library_says() -> None:
    endpoint = parse_endpoint("https://x.example/in?token=tok%2Fen-9f31&plain")
    assert endpoint.shown == "https://x.example/in"
    assert endpoint.secrets == {"--otlp, token": "tok/en-9f31"}
    for said in ("url: /in?token=tok%2Fen-9f31&plain (refused)", "url: /in?token=tok/en-9f31", "no tok/en-9f31 here"):
        assert "9f31" not in endpoint.without_query(said)


@pytest.mark.parametrize(
    "text",
    ["", "localhost:4318", "ftp://x", "http://", "grpc://", "grpc://h/path", "grpc://h:x", "http://h:99999",
     "http://[::1", "grpc://u@h"],
)  # fmt: skip
def test_a_url_that_spans_cannot_be_sent_to_is_an_error(text: str) -> None:
    with pytest.raises(EndpointError, match="--otlp"):
        parse_endpoint(text)
