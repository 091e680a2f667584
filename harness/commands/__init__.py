"""The subcommands of `wiretrap`, one module each, imported only when named."""
