"""The scenarios that a night of chaos draws, within what each mode promises to survive, as pure data."""
