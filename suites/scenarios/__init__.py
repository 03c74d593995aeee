"""Scenarios as pure data; nothing here has an effect."""
