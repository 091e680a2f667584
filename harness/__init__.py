"""The judge: scenarios, trials, traces and verdicts. It imports `proxy`, never the other way round."""
