"""`wiretrap up`: several proxies at once, from one file. Refuses to know what a frame says."""
