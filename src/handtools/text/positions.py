"""Positions: characters of a line counted as language servers count them, in units of UTF-16."""


def units(line: str, column: int) -> int:
    """How many units stand before a character."""
    head = line[:column]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


def column(line: str, units: int) -> int:
    """The character at a number of units; the end of the line beyond it, the character itself inside of one."""
    if line.isascii():
        return min(units, len(line))
    data = line.encode("utf-16-le", "surrogatepass")[: 2 * units]
    return len(data.decode("utf-16-le", "ignore"))
