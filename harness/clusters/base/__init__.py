"""Shared by every cluster of servers, whether they run as processes or in containers."""
