"""Shared by the clients of all libraries: records that were read become rows of the ledger, with the damage of each."""
