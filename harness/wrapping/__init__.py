"""`wiretrap wrap`: a client's own configuration, with a proxy before every server. Refuses to know frames."""
