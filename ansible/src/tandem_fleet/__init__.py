"""A fleet is a folder that Ansible reads as an inventory: server, kits, secrets encrypted with one key, and the fleet's own CA."""
