"""UUIDs of version 7 (RFC 9562, section 5.7), which say when they were made. Pure."""

import re

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def parse_uuid(value: object) -> str | None:
    """Return an id in the one spelling that file names have, None where it is no UUID."""
    found = re.fullmatch(UUID, value.lower()) if isinstance(value, str) else None
    return found[0] if found else None


def born_ms(uuid: str) -> int | None:
    """Return the time in a UUIDv7, in milliseconds since 1970; None for other versions. RFC 9562."""
    return int(uuid[:8] + uuid[9:13], 16) if uuid[14] == "7" else None
