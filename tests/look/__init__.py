"""Tests of the style sheet."""
