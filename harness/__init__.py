"""The judge: scenarios, trials, traces and verdicts. It imports `proxy`, never the other way round."""

import proxy

if getattr(proxy, "WIRETRAP_ROOM", None) != "proxy":
    raise ImportError(
        f"the package `proxy` at {getattr(proxy, '__file__', None) or list(proxy.__path__)} is not Wiretrap's: another "
        "distribution installs a package of that name; install wiretrap into an environment of its own"
    )
