"""The handlers of other projects on the chains of `scenarios/`, one project a file.

Each says how to attach it as its documentation does for production, with its background export on, and sends what it
exports to `peers.sink` on this machine. `peers.offline` sees to it that nothing goes anywhere else.
"""
