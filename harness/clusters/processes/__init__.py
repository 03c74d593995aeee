"""Servers as processes of this machine: command lines, programs and class archives."""
