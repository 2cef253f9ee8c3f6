"""What is built of what: parts, their power, their wires, the case, and the papers that go with a kit. Each is made from a source here."""
