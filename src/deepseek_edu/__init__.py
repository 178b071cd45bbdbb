"""DeepSeek-V4.1-Flash, small enough to read, and the course built from it."""

__version__ = "0.1.0"
