"""Wire formats: to and from what providers and files hold. Pure; nothing here reads a file or talks to a network."""

from turnlog.formats.rules import Problem, ProblemLevel, problems

__all__ = ["Problem", "ProblemLevel", "problems"]
