"""Property tests draw the same examples on every run, without a time limit that a slow machine could miss."""

from hypothesis import settings

settings.register_profile("course", deadline=None, derandomize=True, database=None)
settings.load_profile("course")
