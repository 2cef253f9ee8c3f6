"""One machine as many hosts: probe, operators, internet and server as network namespaces that vanish with their maker."""

from tandem_bench.topology.requirements import EnvironmentLacks
from tandem_bench.topology.spec import SERVER_NAME, OperatorNet, TopologySpec
from tandem_bench.topology.topology import Topology, TopologyError

__all__ = ["SERVER_NAME", "EnvironmentLacks", "OperatorNet", "Topology", "TopologyError", "TopologySpec"]
