"""A run folder as text, JSON and JUnit."""
