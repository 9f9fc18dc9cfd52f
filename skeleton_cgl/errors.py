"""The one exception of the suite whose message is meant for the user: what was found, where, what was expected."""


class InputError(ValueError):
    """Something given to the suite (a file, a field, an option) cannot be used; the message says which and why."""
