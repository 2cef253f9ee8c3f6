"""Random offers, bytes, breaks, corruptions, power cuts and restarts: what is stored is what was offered, and no offset lies."""

import contextlib
import gzip
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.upload_service_here import Place, offered
from tandem_server.registry import NameTaken
from tandem_server.uploads.service import BadBytes, NoOffer, WrongOffset

_IN_MEMORY = Path("/dev/shm")  # noqa: S108  (thousands of syncs)
NAMES = ("captures/a.pcap", "b", "b/c", "b.gz")
CONTENTS = (random.Random(1).randbytes(30_000), bytes(range(256)) * 40, b"packets " * 2048, bytes(9000), b"x", b"")
ENCODINGS = ("identity", "gzip")
PROBES = ("probe-1", "probe-2")
probes, contents = st.sampled_from(PROBES), st.integers(0, len(CONTENTS) - 1)


class AnyOrder(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
        self.places = [Place(self.folder), Place(self.folder)]  # two processes of one gateway
        self.offers = {}
        self.told = {}
        self.receipts = {}
        self.dirty = set()
        self.offer(0, "probe-1", NAMES[0], 0, "identity")

    def teardown(self):
        for place in getattr(self, "places", []):
            place.registry.close()
        shutil.rmtree(self.folder)

    def tell(self, key, offset):
        """An offset was told: what comes before it is on disk, whatever happens."""
        self.told[key] = offset
        offer, stream, _ = self.offers[key]
        file = self.places[0].stream(key[0], offer)
        assert offset <= len(stream)
        assert (file.stat().st_size if file.exists() else 0) >= offset

    @rule(
        which=st.integers(0, 1),
        probe=probes,
        name=st.sampled_from(NAMES),
        content=contents,
        encoding=st.sampled_from(ENCODINGS),
    )
    def offer(self, which, probe, name, content, encoding):
        content = CONTENTS[content]
        offer, stream = offered(content, name, encoding)
        key = (probe, offer.sha256)
        received = {name for one, name in self.receipts if one == probe}
        try:
            state = self.places[which].desk.offer(probe, offer)
        except NameTaken:
            assert self.receipts[probe, name].sha256 != offer.sha256
            return
        if state.receipt is not None:
            assert state.receipt.name == name
            assert any(r.sha256 == offer.sha256 for (one, _), r in self.receipts.items() if one == probe)
            self.receipts[probe, name] = state.receipt
            return
        assert name not in received
        for other in [k for k, (o, _, _) in self.offers.items() if k[0] == probe and k != key and o.name == name]:
            del self.offers[other]
        old = self.offers.get(key)
        self.offers[key] = (offer, stream, content)
        if old is not None and old[0].chunks != offer.chunks:
            assert state.offset == 0
        self.tell(key, state.offset)

    @precondition(lambda self: self.offers)
    @rule(
        which=st.integers(0, 1), pick=st.randoms(use_true_random=False), length=st.integers(0, 20_000), piece=st.integers(1, 9000),
        corrupt=st.booleans(), breaks=st.booleans(),
    )  # fmt: skip
    def send(self, which, pick, length, piece, corrupt, breaks):
        key = pick.choice(sorted(self.offers))
        stream = self.offers[key][1]
        desk = self.places[which].desk
        state = desk.state(*key)
        self.tell(key, state.offset)
        for wrong in {0, state.offset + 1, state.offset - 1} - {state.offset}:
            with pytest.raises(WrongOffset) as refused:
                desk.begin(*key, wrong)
            assert refused.value.offset == state.offset
        coming = bytearray(stream[state.offset : state.offset + length])
        if corrupt and coming:
            coming[pick.randrange(len(coming))] ^= 1 << pick.randrange(8)
        writer = desk.begin(*key, state.offset)
        try:
            for at in range(0, len(coming), piece):
                writer.append(bytes(coming[at : at + piece]))
            if not breaks:
                desk.checkpoint(writer)
                self.tell(key, writer.offset)
        except BadBytes as error:
            self.refused(key, error.offset, corrupt)
        finally:
            writer.close()
        if corrupt:
            self.dirty.add(key)

    def refused(self, key, offset, corrupt):
        """A chunk is cut off only when it held what was corrupted, then or earlier."""
        assert corrupt or key in self.dirty
        assert offset in self.chunk_begins(self.offers[key][0])
        self.tell(key, offset)

    @precondition(lambda self: self.offers)
    @rule(which=st.integers(0, 1), pick=st.randoms(use_true_random=False))
    def send_the_rest(self, which, pick):
        """Whatever was before, a probe that sends what is asked for gets there: a bad unfinished chunk costs one more request."""
        key = pick.choice(sorted(self.offers))
        stream = self.offers[key][1]
        desk = self.places[which].desk
        for _ in range(2):
            writer = desk.begin(*key, desk.state(*key).offset)
            try:
                writer.append(stream[writer.offset :])
                desk.checkpoint(writer)
                break
            except BadBytes as error:
                self.refused(key, error.offset, False)
                self.dirty.discard(key)
            finally:
                writer.close()
        assert desk.complete(*key)
        self.tell(key, len(stream))

    def chunk_begins(self, offer):
        begins = [0]
        for chunk in offer.chunks:
            begins.append(begins[-1] + chunk.bytes)
        return begins

    @precondition(lambda self: self.offers)
    @rule(pick=st.randoms(use_true_random=False), zeros=st.booleans(), more=st.integers(0, 5000))
    def power_cut(self, pick, zeros, more):
        """What was told to be safe is; behind it the tail is lost, or there as zeros."""
        key = pick.choice(sorted(self.offers))
        file = self.places[0].stream(key[0], self.offers[key][0])
        told = self.told[key]
        if file.exists() and file.stat().st_size > told:
            size = file.stat().st_size
            with file.open("r+b") as there:
                there.truncate(min(size, told + more))
                if zeros:
                    there.truncate(size)
            self.dirty.add(key)
        self.restart()

    @rule()
    def restart(self):
        for place in self.places:
            place.registry.close()
        self.places = [Place(self.folder), Place(self.folder)]

    @rule(which=st.integers(0, 1))
    def sweep(self, which):
        assert self.places[which].desk.sweep() == 0

    @precondition(lambda self: self.offers)
    @rule(which=st.integers(0, 1), pick=st.randoms(use_true_random=False))
    def settle(self, which, pick):
        key = pick.choice(sorted(self.offers))
        offer, stream, _ = self.offers[key]
        try:
            state = self.places[which].desk.settle(*key)
        except NameTaken:
            assert self.receipts[key[0], offer.name].sha256 != offer.sha256
            del self.offers[key]
            return
        if state.receipt is None:
            assert state.offset < len(stream)
            self.tell(key, state.offset)
            return
        receipt = state.receipt
        assert (receipt.probe, receipt.name, receipt.run) == (key[0], offer.name, "run-1")
        self.receipts[key[0], offer.name] = receipt
        del self.offers[key]
        with contextlib.suppress(NoOffer):
            assert self.places[1 - which].desk.settle(*key).receipt is not None

    @invariant()
    def what_is_checked_is_what_was_offered(self):
        for (probe, sha256), (offer, stream, _) in getattr(self, "offers", {}).items():
            checked = self.places[0].registry.pending_uploads.offered(probe, sha256)[0].checked_bytes
            assert checked in self.chunk_begins(offer)
            file = self.places[0].stream(probe, offer)
            assert (file.read_bytes() if file.exists() else b"")[:checked] == stream[:checked]

    @invariant()
    def what_is_stored_is_what_was_offered(self):
        if not hasattr(self, "places"):
            return
        rows = {(row.probe, row.name): row for row in self.places[0].registry.traces.received()}
        assert {key: row.receipt for key, row in rows.items()} == self.receipts
        for row in rows.values():
            stored = self.places[0].store.open(row.place)
            with stored:
                content = stored.read()
            assert len(content) == row.stored_bytes
            plain = gzip.decompress(content) if row.encoding == "gzip" else content
            assert plain in CONTENTS
            assert offered(plain)[0].sha256 == row.sha256
            assert (self.folder / "traces" / row.place).stat().st_mode & 0o777 == 0o440


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(stateful_step_count=25)
