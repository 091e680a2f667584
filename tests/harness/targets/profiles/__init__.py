"""The profiles of coding agents."""
