"""The driver of ZTE's sticks and routers by HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Identity, Reading
from tandem.modem.zte_web.decode import decode, fault

FIELDS = (
    "model_name,wa_inner_version,network_type,rmcc,rmnc,cell_id,enodeb_id,tac_code,lac_code,rssi,rscp,ecio,lte_rsrp,lte_rsrq,lte_rssi,lte_snr,lte_pci,"
    "wan_active_band,wan_active_channel,lte_band,lte_ca_pcell_band,lte_ca_pcell_bandwidth,bandwidth,"
    "Z5g_rsrp,Z5g_rsrq,Z5g_SINR,nr5g_rsrp,nr5g_rsrq,nr5g_snr,nr5g_rssi,nr5g_pci,nr5g_cell_id,nr5g_action_band,"
    "nr5g_action_channel,nr5g_bandwidth"
)
"""What is asked for in one request; names that a model does not know are left out or empty in its answer."""


@dataclass(frozen=True)
class ZteWeb:
    """One page a poll. The Referer, without which every field is empty, is the transport's."""

    name: str = "zte_web"
    transport: str = "http"
    reads: tuple[str, ...] = ()
    reboot_command: str = "POST /goform/goform_set_cmd_process isTest=false&goformId=REBOOT_DEVICE"

    def setup_commands(self, identity: Identity) -> tuple[str, ...]:
        """None: nothing is switched on."""
        return ()

    def poll_commands(self, identity: Identity) -> tuple[str, ...]:
        """The same for every model."""
        return (f"GET /goform/goform_get_cmd_process?multi_data=1&isTest=false&cmd={FIELDS}",)

    def matches(self, identity: Identity) -> bool:
        """Never by what an AT port says, unless it is named so; a web server is known by which family's pages it answers."""
        return identity.says("zte web")

    def decode(self, responses: Sequence[Response], identity: Identity) -> Reading:
        """See ``zte_web.decode``."""
        return decode(responses, identity)

    def fault(self, response: Response) -> str | None:
        """See ``zte_web.decode.fault``."""
        return fault(response)


DRIVER = ZteWeb()
