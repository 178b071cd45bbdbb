"""The mechanisms of DeepSeek-V4.1-Flash in NumPy, one per file, written to be read.

Only NumPy and the standard library are imported here, so that every file runs unchanged in CPython and in Pyodide.
"""
