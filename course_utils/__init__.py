"""What the chapters share: science (what is taught), classroom (how), exercises, delivery (how it reaches people)."""

__version__ = "0.1.0"
