"""What pip's failure means, in a sentence. pip says little ("No matching distribution") and logs the reason.

Standard library only.
"""

import re

LITTLE = 20_000_000  # bytes: with less than this left the disk is as good as full

DISK_FULL = (
    "The disk is full: the course needs about 3 GB while it installs, here and in the temporary folder. "
    "Make room and run the command again."
)

# In this order: the first cause that the log shows is the one to tell. A full disk or a refusing proxy also
# brings errors further down the list.
CAUSES = (
    (
        r"\[Errno (28|122|27)\]|\[WinError 112\]|No space left on device|Disk quota exceeded",
        DISK_FULL,
    ),
    (
        r"DO NOT MATCH THE HASHES|HashMismatch",
        "A package arrived with other content than the course expects (its hash differs): not installed. "
        "Run the command again; if it happens twice, a proxy or package mirror alters or replaces files.",
    ),
    (
        r"\[Errno (13|30|1)\]|\[WinError 5\]|Permission denied|Read-only file system",
        "A file can't be written (permission denied, or open in another program): close what uses the "
        "course's folder, make sure that it belongs to you, and run the command again.",
    ),
    (
        r"407 Proxy|ProxyError|Cannot connect to proxy|InvalidProxyURL",
        "The proxy refuses or can't be reached: set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT "
        "or 'pip config set global.proxy ...' as your network's administrators say, and run this again.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError",
        "The server's certificate can't be verified, as in networks that inspect traffic: get the network's "
        "certificate file, 'pip config set global.cert FILE', and run the command again.",
    ),
    (
        r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|NameResolutionError|ConnectionResetError"
        r"|ProtocolError|Failed to establish a new connection|Read timed out|IncompleteRead",
        "No network: packages can't be fetched. Connect and run the command again; it goes on where it was.",
    ),
    (
        r"ERROR: (Cannot install|ResolutionImpossible)|The user requested \(constraint\)",
        "The course's packages conflict with a constraint in your pip settings ('pip config list' shows "
        "them): lift it for this environment and run the command again.",
    ),
)
NO_BUILD = (
    "{package} can't be had for this computer and its Python {python}: the package index has no build of it. "
    "Use Python 3.11 to 3.14, 64 bit, on Linux, macOS or Windows; remove .venv if another one made it."
)
UNKNOWN = "pip failed; its own words are above. Put that right and run the command again; it goes on where it was."


def explain(log: str, free: int | None = None, otherwise: str = UNKNOWN) -> str:
    """The cause of a failure and what to do, by pip's log and the bytes left on the disk; or otherwise."""
    if free is not None and free < LITTLE:
        return DISK_FULL
    for pattern, sentence in CAUSES:
        if re.search(pattern, log):
            return sentence
    missing = re.search(r"No matching distribution found for ([^\s(]+)|Failed building wheel for (\S+)", log)
    if not missing:
        return otherwise
    python = re.search(r"\(python ([\d.]+)\)", log)
    return NO_BUILD.format(package=missing[1] or missing[2], python=python[1] if python else "of this version")
