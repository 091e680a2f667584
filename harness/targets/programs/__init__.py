"""Programs that stand for a target in a trial: a task's file in, and what the target itself reported out, as a file.

Each is a process of its own, so that it ends with the trial, and needs the standard library alone.
"""
