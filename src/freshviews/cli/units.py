"""Formats numbers of seconds and bytes as readable text."""

def duration(seconds: float) -> str:
    """Seconds in a readable unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"


def size(count: int) -> str:
    """Bytes in a readable unit."""
    found = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if found < 1000:
            return f"{found:.0f} {unit}" if unit == "B" else f"{found:.1f} {unit}"
        found /= 1000
    return f"{found:.1f} TB"
