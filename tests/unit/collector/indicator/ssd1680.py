"""Stands for the panel, which cannot be here: decodes the SSD1680's commands as its data sheet has them, and gives back the picture.

Written from the data sheet apart from the driver: memory of 176 sources by 296 gates, address counters with ranges and direction, a
reset that is asked for, a controller that is deaf while it is busy or asleep.
"""

import struct

GLASS = (122, 250)
"""Sources and gates of the 2.13 inch panel."""


class Ssd1680:
    """``looks``: for so many looks at BUSY each reset and refresh takes; None: it never ends."""

    def __init__(self, looks: int | None = 3) -> None:
        self.memory = [[0] * (176 // 8) for _ in range(296)]
        self.glass: list[list[bool]] | None = None
        """By gate and source, whether it is black; None: whatever it showed before."""
        self.refreshes = 0
        self.asleep = True
        self._looks, self._busy = looks, 0
        self._low = False
        self._registers: dict[str, tuple[int, ...]] = {}

    def reset(self, *, low: bool) -> None:
        if self._low and not low:
            self.asleep, self._registers = False, {}
            self._work()
        self._low = low

    def busy(self) -> bool:
        if self._looks is None and self._busy:
            return True
        self._busy = max(0, self._busy - 1)
        return self._busy > 0

    def _work(self) -> None:
        self._busy = 1 if self._looks is None else self._looks

    def command(self, code: int, data: bytes = b"") -> None:
        assert not self.asleep, f"{code:#x} to a controller that sleeps"
        assert self._busy == 0, f"{code:#x} to a controller that is busy"
        assert not self._low, "it is held in reset"
        lengths = {0x12: 0, 0x20: 0, 0x01: 3, 0x45: 4, **dict.fromkeys((0x44, 0x4F, 0x21), 2)}
        lengths |= dict.fromkeys((0x11, 0x4E, 0x3C, 0x18, 0x22, 0x10), 1)
        assert code == 0x24 or lengths[code] == len(data), f"{code:#x} with {len(data)} bytes"
        if code == 0x12:
            self._registers = {"x": (0, 21), "y": (0, 295), "at": (0, 0)}
            self._work()
        elif code == 0x01:
            self._registers["gates"] = (data[0] + ((data[1] & 1) << 8) + 1, data[2])
        elif code == 0x11:
            assert data[0] == 3, "only X and Y up, X first, is known here"
            self._registers["entry"] = (3,)
        elif code == 0x44:
            self._registers["x"] = (data[0], data[1])
        elif code == 0x45:
            self._registers["y"] = struct.unpack("<HH", data)
        elif code == 0x4E:
            self._registers["at"] = (data[0], self._registers["at"][1])
        elif code == 0x4F:
            self._registers["at"] = (self._registers["at"][0], *struct.unpack("<H", data))
        elif code == 0x21:
            self._registers["first_source"] = (8 if data[1] & 0x80 else 0,)
        elif code == 0x22:
            self._registers["sequence"] = (data[0],)
        elif code == 0x24:
            self._write(data)
        elif code == 0x20:
            self._refresh()
        elif code == 0x10:
            self.asleep = data[0] != 0

    def _write(self, data: bytes) -> None:
        assert self._registers["entry"]
        (x_first, x_last), (y_first, y_last) = self._registers["x"], self._registers["y"]
        x, y = self._registers["at"]
        for byte in data:
            self.memory[y][x] = byte
            x += 1
            if x > x_last:
                x, y = x_first, y + 1
            if y > y_last:
                y = y_first
        self._registers["at"] = (x, y)

    def _refresh(self) -> None:
        assert self._registers["sequence"] == (0xF7,), "only a whole refresh is known here"
        assert self._registers["gates"] == (GLASS[1], 0)
        assert self._registers["first_source"] == (8,), "this glass is wired to sources 8 and up"
        self.glass = [
            [not self.memory[gate][source // 8] >> (7 - source % 8) & 1 for source in range(GLASS[0])]
            for gate in range(GLASS[1])
        ]
        self.refreshes += 1
        self._work()

    def seen(self) -> list[list[bool]]:
        """As one sees it with the panel on its long side, its connector on the left: rows of dots, True for black."""
        sources, gates = GLASS
        return [[self.glass[gate][sources - 1 - row] for gate in range(gates)] for row in range(sources)]
