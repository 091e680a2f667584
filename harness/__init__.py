"""The judge: scenarios, trials, traces and verdicts. It imports `proxy`, never the other way round."""

from harness.rooms import check_room

check_room("proxy")
