"""What ``+CME ERROR: n`` means: 3GPP TS 27.007 clauses 9.2.1 (general), 9.2.2 (packet domain)."""

from __future__ import annotations

MEANINGS = {
    0: "phone failure", 1: "no connection to the phone", 2: "the link to the phone is reserved", 3: "operation not allowed",
    4: "operation not supported", 5: "the phone wants its SIM's PIN", 6: "the phone wants its first SIM's PIN",
    7: "the phone wants its first SIM's PUK", 10: "no SIM inserted", 11: "the SIM wants its PIN", 12: "the SIM wants its PUK",
    13: "SIM failure", 14: "SIM busy", 15: "wrong SIM", 16: "wrong password", 17: "the SIM wants its PIN2",
    18: "the SIM wants its PUK2", 20: "memory full", 21: "invalid index", 22: "not found", 23: "memory failure",
    24: "text too long", 25: "invalid characters in a text", 26: "number too long", 27: "invalid characters in a number",
    30: "no network service", 31: "the network did not answer in time", 32: "network not allowed, emergency calls only",
    40: "locked to a network: PIN wanted", 41: "locked to a network: PUK wanted", 42: "locked to a part of a network: PIN wanted",
    43: "locked to a part of a network: PUK wanted", 44: "locked to a service provider: PIN wanted",
    45: "locked to a service provider: PUK wanted", 46: "locked to a company: PIN wanted", 47: "locked to a company: PUK wanted",
    48: "hidden key wanted", 49: "EAP method not supported", 50: "incorrect parameters", 51: "command known but switched off",
    52: "command ended by the user", 53: "not attached to the network, the modem's functions are restricted",
    54: "modem not allowed, emergency calls only", 55: "not allowed, the modem's functions are restricted",
    56: "fixed dial numbers only", 57: "out of service for now, the modem is used otherwise", 58: "language not supported",
    59: "unexpected value", 60: "system failure", 61: "data missing", 62: "call barred", 63: "message waiting not subscribed",
    100: "unknown error", 103: "illegal subscriber", 106: "illegal equipment", 107: "packet services not allowed",
    111: "network not allowed", 112: "location area not allowed", 113: "roaming not allowed here",
    132: "service not supported", 133: "service not subscribed", 134: "service out of order for now",
    148: "unspecified packet error", 149: "authentication failed", 150: "invalid class of mobile",
}  # fmt: skip


def explained(code: str) -> str:
    """``cme_error 10`` → ``+CME ERROR 10: no SIM inserted``; other codes of a final result in words."""
    kind, _, number = code.partition(" ")
    if kind == "cme_error":
        known = MEANINGS.get(int(number)) if number.isascii() and number.isdigit() and len(number) < 6 else None
        return f"+CME ERROR {number}" + (f": {known}" if known else "")
    if kind == "cms_error":
        return f"+CMS ERROR {number}"
    return {"error": "ERROR", "unsupported": "COMMAND NOT SUPPORT"}.get(code, code.replace("_", " ").upper())
