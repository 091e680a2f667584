"""Coding agents as `command` targets: how each is started, and what its output says, a module an agent.

Refuses to know how a process is run. Nothing here reads the system.
"""
