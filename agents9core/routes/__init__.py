"""Routes from a process to its session.

What `/proc` shows, open files, locks, and what decides between several.
"""
