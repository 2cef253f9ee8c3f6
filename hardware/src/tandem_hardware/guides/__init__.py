"""The papers that go with a kit: their generated blocks, and how they are printed."""
