"""Small connections whose every metric can be worked out by hand."""

import ipaddress

from support.captures import (
    ACK,
    CLIENT,
    CLIENT2,
    FIN,
    MS,
    PSH,
    SERVER,
    SYN,
    End,
    Packet,
    Wire,
    capable,
    dss,
    first_dsn,
    mss,
    multipath,
    scale,
    timestamps,
    token,
)

CLIENT_KEY, SERVER_KEY = 0x0102030405060708, 0x1112131415161718
C0, S0 = 1_000, 0xFFFF_F000
"""Initial sequence numbers; the server's goes over the edge of 32 bits soon."""


def plain_download(client: str = CLIENT, server: str = SERVER) -> Wire:
    """Captured at the client: RTT 40 ms, one segment lost and sent again, one that came twice."""
    wire = Wire()
    c = wire.end(client, 40_000, server, 443)
    s = c.other()
    c(0, C0, 0, SYN, options=mss(1400) + scale(7) + timestamps(100, 0))
    s(40 * MS, S0, C0 + 1, SYN | ACK, options=mss(1460) + scale(8) + timestamps(900, 100))
    c(40 * MS + 100_000, C0 + 1, S0 + 1, options=timestamps(140, 900), window=512)
    c(40 * MS + 200_000, C0 + 1, S0 + 1, PSH | ACK, 100, timestamps(140, 900), 512)
    s(80 * MS, S0 + 1, C0 + 101, ACK, 1000, timestamps(940, 140), 256)
    s(81 * MS, S0 + 1001, C0 + 101, ACK, 1000, timestamps(940, 140), 256)
    c(81 * MS + 50_000, C0 + 101, S0 + 2001, options=timestamps(181, 940), window=512)
    # The third is lost; the fourth and fifth come.
    s(121 * MS, S0 + 3001, C0 + 101, ACK, 1000, timestamps(981, 181), 256)
    c(121 * MS + 50_000, C0 + 101, S0 + 2001, options=timestamps(221, 940), window=504)
    s(122 * MS, S0 + 4001, C0 + 101, ACK, 1000, timestamps(981, 181), 256)
    c(122 * MS + 50_000, C0 + 101, S0 + 2001, options=timestamps(222, 940), window=496)
    # The lost one again, then the fourth once more though it was here.
    s(165 * MS, S0 + 2001, C0 + 101, ACK, 1000, timestamps(1025, 222), 256)
    c(165 * MS + 50_000, C0 + 101, S0 + 5001, options=timestamps(265, 1025), window=512)
    s(166 * MS, S0 + 3001, C0 + 101, ACK, 1000, timestamps(1026, 222), 256)
    s(210 * MS, S0 + 5001, C0 + 101, FIN | ACK, 500, timestamps(1070, 265), 256)
    c(210 * MS + 50_000, C0 + 101, S0 + 5502, FIN | ACK, 0, timestamps(310, 1070), 512)
    s(250 * MS, S0 + 5502, C0 + 102, ACK, 0, timestamps(1110, 310), 256)
    return wire


class Multipath:
    """An MPTCP connection of one version; its ends, and how to open subflows. All times are of the capture at the client."""

    def __init__(self, version: int = 1, rtt_ns: int = 40 * MS) -> None:
        self.version, self.rtt_ns = version, rtt_ns
        self.wire = Wire()
        self.to_client = first_dsn(SERVER_KEY, version)
        self.to_server = first_dsn(CLIENT_KEY, version)

    def open(self, at_ns: int = 0) -> tuple[End, End]:
        c = self.wire.end(CLIENT, 40_000, SERVER, 443)
        s = c.other()
        mine = (CLIENT_KEY,) if self.version == 0 else ()
        c(at_ns, C0, 0, SYN, options=capable(self.version, *mine))
        s(at_ns + self.rtt_ns, S0, C0 + 1, SYN | ACK, options=capable(self.version, SERVER_KEY))
        c(at_ns + self.rtt_ns + 1000, C0 + 1, S0 + 1, options=capable(self.version, CLIENT_KEY, SERVER_KEY))
        return c, s

    def join(self, at_ns: int, backup: int = 0, asked: int | None = None) -> tuple[End, End]:
        c = self.wire.end(CLIENT2, 40_001, SERVER, 443)
        s = c.other()
        asked = token(SERVER_KEY, self.version) if asked is None else asked
        body = bytes([2]) + asked.to_bytes(4, "big") + bytes(4)
        c(at_ns, C0, 0, SYN, options=multipath(1, backup, body))
        s(at_ns + self.rtt_ns, S0, C0 + 1, SYN | ACK, options=multipath(1, 0, bytes([3]) + bytes(12)))
        c(at_ns + self.rtt_ns + 1000, C0 + 1, S0 + 1, options=multipath(1, 0, bytes(21)))
        return c, s

    def data(self, end: End, at_ns: int, relative: int, data: int, length: int) -> None:
        """Payload to the client: at ``relative`` of the subflow and ``data`` of the connection, both from 0, with its own mapping."""
        mapped = dss(ack=self.to_server, dsn=self.to_client + data, ssn=relative + 1, length=length)
        end(at_ns, S0 + 1 + relative, C0 + 1, ACK, length, mapped)

    def acknowledge(self, end: End, at_ns: int, relative: int, data: int) -> None:
        end(at_ns, C0 + 1, S0 + 1 + relative, ACK, 0, dss(ack=self.to_client + data))


def two_subflows(version: int = 1) -> Multipath:
    """Half of 4000 bytes each: the second subflow's come first, then what fills the gap, then 1000 of them again on the other."""
    scene = Multipath(version)
    _, s1 = scene.open()
    _, s2 = scene.join(100 * MS, backup=1)
    scene.data(s1, 200 * MS, 0, 0, 1000)
    scene.data(s2, 201 * MS, 0, 3000, 1000)
    scene.data(s2, 202 * MS, 1000, 2000, 1000)
    scene.data(s1, 203 * MS, 1000, 1000, 1000)
    scene.acknowledge(s1.other(), 204 * MS, 2000, 4000)
    scene.data(s2, 205 * MS, 2000, 500, 1000)
    return scene


def by_path(packets: list[Packet]) -> tuple[list[Packet], list[Packet]]:
    """Those of the first subflow and those of the second; the packets begin with their IP header."""
    second = ipaddress.ip_address(CLIENT2).packed
    parted: tuple[list[Packet], list[Packet]] = ([], [])
    for packet in packets:
        parted[second in (packet.content[12:16], packet.content[16:20])].append(packet)
    return parted
