"""How long something takes, in words."""

_A_YEAR = 365 * 24 * 3600


def duration(seconds: float) -> str:
    """Return a time in the units that tell most of it: `3 d 4 h`, `2 h 05 min`, `1 min 30 s`, `7 s`, or years."""
    if seconds > _A_YEAR:
        return f"{seconds / _A_YEAR:,.0f} years"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
