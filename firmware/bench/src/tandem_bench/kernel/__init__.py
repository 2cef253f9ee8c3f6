"""The bench on another kernel: a virtual machine, in it the networks, the server and the collector."""
