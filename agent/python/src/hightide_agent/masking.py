"""Secrets in arguments and in the texts of exceptions are replaced before anything is recorded."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    import re
    from typing import Optional


MASK = "***"

# A text with none of these (in lower case) holds nothing that the patterns would find: spares the
# import of re in nearly every process.
_SIGNS = (
    "token", "key", "secret", "passw", "pwd", "auth", "bearer", "credential", "://", "akia", "asia", "hf_", "ghp_",
    "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xox", "eyj", "-----begin",
)  # fmt: skip
_NAME = (
    r"[\w.-]*(?:token(?!i[sz]|s)|api[_-]?key|access[_-]?key|secret|passw(?:or)?d|passphrase|pwd|\bpw\b"
    r"|auth(?!or(?!iz))|credential)s?[\w.-]*"
)
_VALUE = r"""(?:(?:bearer|basic)\s+)?("[^"]*"|'[^']*'|[^\s,;&'"]+)"""
_patterns: Optional[list[tuple[re.Pattern[str], str]]] = None  # compiled at first use


def mask(text: str) -> str:
    """Return text with what looks like a secret replaced by ***; names of options and hosts stay."""
    low = text.lower()
    if not any(sign in low for sign in _SIGNS):
        return text
    for pattern, replacement in _compiled():
        text = pattern.sub(replacement, text)
    return text


def mask_arguments(arguments: list[str]) -> list[str]:
    """Mask each argument, and the one that follows an option such as `--token`."""
    masked, hide, before = [], False, ""
    plugins = any(argument.rpartition("/")[2] in ("pytest", "py.test") for argument in arguments)
    for argument in arguments:
        place = "" if plugins and before == "-p" else before  # to pytest -p names a plugin
        masked.append(MASK if hide else _mask_short(arguments[0], place, mask(argument)))
        hide, before = _names_secret(argument), argument
    return masked


def _mask_short(program: str, before: str, argument: str) -> str:
    """Hide what only its place gives away: -p s3cr3t, -ps3cr3t of MySQL's programs, -u user:s3cr3t, login s3cr3t."""
    name, _, password = argument.partition(":")
    program = program.rpartition("/")[2]
    if before in ("-p", "-pw"):
        port = len(argument) <= 5 and argument.isdigit()
        return argument if port or argument.startswith("-") or "/" in argument or not argument.strip(".") else MASK
    if argument.startswith("-p") and len(argument) > 2 and program.startswith(("mysql", "mariadb", "sshpass")):
        return "-p" + MASK
    if before in ("-u", "--user", "--proxy-user") and password:
        return name + ":" + MASK
    if before == "login" and len(argument) >= 16 and argument.replace("-", "").replace("_", "").isalnum():
        return MASK
    return argument


def _names_secret(argument: str) -> bool:
    low = argument.lower()
    if not low.startswith("-") or "=" in low or not any(sign in low for sign in _SIGNS[:8]):
        return False
    import re

    return re.fullmatch("-{1,2}" + _NAME, low) is not None


def _compiled() -> list[tuple[re.Pattern[str], str]]:
    global _patterns
    if _patterns is None:
        import re

        _patterns = [
            (re.compile(pattern, re.IGNORECASE | re.DOTALL), replacement)
            for pattern, replacement in (
                (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)", MASK),
                (r"\b([a-z][a-z0-9+.-]*://)[^\s/\"']+@", r"\1" + MASK + "@"),
                (r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", r"\1 " + MASK),
                (r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}", MASK),
                (r"\b(?:hf_|gh[opsu]_|github_pat_|glpat-|sk-|xox[abp]-)[\w-]{8,}", MASK),
                (r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*", MASK),
                (
                    r"(\b|-)(" + _NAME + r"""["']?\s*[=:]\s*)""" + _VALUE,
                    r"\1\2" + MASK,
                ),
            )
        ]
    return _patterns
