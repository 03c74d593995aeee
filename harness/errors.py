"""Errors that users see. Each message is one line: the thing, the place and the remedy."""

from __future__ import annotations


class OnceproofError(Exception):
    """An error that users can act on; its message says how."""


class UsageError(OnceproofError):
    """The call, a setting or an input file is wrong."""


class RunRefusedError(UsageError):
    """The run would prove nothing on this cluster; nothing was produced."""


class SetupError(OnceproofError):
    """Something the harness needs on this machine is missing and could not be installed."""


class ClusterError(OnceproofError):
    """The cluster did not come up, did not answer or could not be ended."""


class StartTimeout(ClusterError):
    """The cluster did not come up in time: a busy machine, or a cluster that never will."""


class FaultError(OnceproofError):
    """A fault could not be applied, or could not be undone."""


class LedgerError(OnceproofError):
    """A run folder or a ledger file is missing, damaged or of another version."""


class WaitTimeout(OnceproofError):
    """A condition did not come true within its limit."""


class NoRoom(OnceproofError):
    """A disk is full. Written records stay valid; missing ones prove nothing."""
