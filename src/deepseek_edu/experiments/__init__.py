"""Measurements: each module is a command that writes a record into assets/runs/.

A record is a JSON object: `id`, `title`, `command`, `seed`, `label` (its evidence label), `model` (what was measured
on), `machine`, `versions`, `date`, `columns` (names) and `rows` (lists in that order) of its table, `notes`, and
`charts`, each with `title`, `description`, `x`, `y` (`label`, `kind`) and `series` (`name`, `x`, `y`, `kind`).
"""
